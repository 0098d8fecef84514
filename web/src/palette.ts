// Colours by what they mean. The tests check that no two of them look alike, also to people who do not see all colours.

export type Theme = "light" | "dark";

// Computing is blue, waiting for others is warm.
export const phaseColours: Record<Theme, Record<string, string>> = {
  light: {
    load: "#ead04f",
    forward: "#74b9f0",
    backward: "#1f5fb0",
    communication: "#f08a24",
    wait: "#bf2c28",
    update: "#1c9a80",
    checkpoint: "#55184a",
    evaluate: "#b673b0",
    other: "#b9bdc4",
  },
  dark: {
    load: "#f0dc7a",
    forward: "#8ecbff",
    backward: "#2f6fd0",
    communication: "#f5922e",
    wait: "#cf3c35",
    update: "#27b090",
    checkpoint: "#8a3b7e",
    evaluate: "#c583c0",
    other: "#666c75",
  },
};

export const phaseLabels: Record<string, string> = {
  load: "Load data",
  forward: "Forward",
  backward: "Backward",
  communication: "Exposed communication",
  wait: "Waiting for a rank",
  update: "Update",
  checkpoint: "Checkpoint",
  evaluate: "Evaluation",
  other: "Other",
};

export function phaseLabel(phase: string): string {
  return phaseLabels[phase] ?? phase;
}

// Of curves side by side: runs, ranks. More than these repeat, dashed.
export const seriesColours: Record<Theme, string[]> = {
  light: ["#1f6fd0", "#e5850b", "#21a583", "#a82470", "#3b2a63", "#6cb8d8"],
  dark: ["#4f9cf7", "#f5b13d", "#2bbd92", "#e0559f", "#d9cdf7", "#7d5bd0"],
};

export function phaseColour(phase: string, theme: Theme): string {
  return phaseColours[theme][phase] ?? phaseColours[theme].other!;
}

export function seriesColour(index: number, theme: Theme): string {
  const colours = seriesColours[theme];
  return colours[index % colours.length]!;
}

export function seriesDash(index: number): number[] {
  return [[], [6, 4], [2, 3]][Math.floor(index / seriesColours.light.length) % 3]!;
}
