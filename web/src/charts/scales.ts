// The axes that charts of this page have.
import { bytes, fixed, percent, rate, seconds, short, tick, whole } from "../format";
import type { Scale } from "./line";

export const step: Scale = { label: "Step", format: whole, tick: whole, whole: true };
export const epoch: Scale = { label: "Epoch", format: whole, tick: whole, whole: true };
export const time: Scale = { label: "Time", format: seconds, tick: tick.clock };

export const loss: Scale = { label: "", format: short, tick: tick.plain };
export const share: Scale = { label: "", format: (value) => percent(value, 2), tick: tick.percent };
export const number: Scale = { label: "", format: (value) => fixed(value, 2), tick: tick.plain };
export const amount: Scale = { label: "", format: whole, tick: whole };
export const memory: Scale = { label: "", format: bytes, tick: tick.bytes };
export const speed: Scale = { label: "", format: rate, tick: tick.rate };
