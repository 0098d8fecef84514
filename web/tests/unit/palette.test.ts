import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, difference, visions } from "../../src/colour_vision";
import { phaseColours, seriesColours, type Theme } from "../../src/palette";

const paper: Record<Theme, string> = { light: "#ffffff", dark: "#16181d" };
const justDifferent = 5; // in hundredths of black to white; about 2 is the least that people notice

for (const theme of ["light", "dark"] as const) {
  const palettes = { phases: Object.values(phaseColours[theme]), series: seriesColours[theme] };
  for (const [name, colours] of Object.entries(palettes)) {
    test(`${name} look different in ${theme} colours, however one sees colours`, () => {
      for (const vision of visions)
        colours.forEach((one, index) => {
          for (const other of colours.slice(index + 1)) assert.ok(difference(one, other, vision) > justDifferent, `${one} and ${other} with ${vision}: ${difference(one, other, vision).toFixed(1)}`);
        });
    });
    test(`${name} stand out from ${theme} paper`, () => {
      for (const colour of colours) assert.ok(contrast(colour, paper[theme]) > 1.5, colour);
    });
  }
}

test("the measures of colours", () => {
  assert.equal(Math.round(difference("#000000", "#ffffff", "full")), 100);
  assert.equal(difference("#123456", "#123456", "deuteranopia"), 0);
  assert.ok(difference("#d01010", "#5a8a10", "protanopia") < difference("#d01010", "#5a8a10", "full"));
  assert.equal(Math.round(contrast("#000000", "#ffffff")), 21);
});
