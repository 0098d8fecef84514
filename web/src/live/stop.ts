// The button that stops a run, as Ctrl-C would: it asks once more before it does.
import { h } from "../dom";
import type { Summary } from "../document";

const patience_ms = 5000;

export interface StopButton {
  element: HTMLElement;
  update(run: Summary | undefined): void; // undefined: there is none to stop
}

export function stopButton(stop: (id: string) => Promise<void>, say: (text: string) => void): StopButton {
  let run: Summary | undefined;
  let asked = 0; // when; 0: not asked
  let stopping = "";
  const button = h("button", { type: "button", class: "action stop", id: "stop", click: () => {
    if (!run) return;
    if (Date.now() - asked > patience_ms) {
      asked = Date.now();
      button.textContent = "Really stop it?";
      window.setTimeout(draw, patience_ms + 50);
      return;
    }
    const id = run.id;
    stopping = id;
    draw();
    say("Asked the run to stop: it finishes its step and saves.");
    stop(id).catch((error: Error) => {
      stopping = "";
      say(error.message);
      draw();
    });
  } });
  const draw = (): void => {
    if (stopping !== run?.id) stopping = "";
    button.hidden = run?.state !== "running";
    button.disabled = stopping !== "";
    if (Date.now() - asked > patience_ms || stopping) button.textContent = stopping ? "Stopping …" : "Stop the run";
  };
  return {
    element: button,
    update(next) {
      if (next?.id !== run?.id) asked = 0;
      run = next;
      draw();
    },
  };
}
