// Numbers as people read them. What is not known is a dash.

const dash = "–";

export type Maybe = number | null | undefined;
const known = (value: Maybe): value is number => value !== null && value !== undefined && Number.isFinite(value);

export function whole(value: Maybe): string {
  return known(value) ? Math.round(value).toLocaleString("en-US") : dash;
}

// Three significant digits, or all digits before the point.
export function short(value: Maybe): string {
  if (!known(value)) return dash;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return whole(value);
  if (size < 0.001) return value.toExponential(1);
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4);
}

export function fixed(value: Maybe, digits: number): string {
  return known(value) ? value.toFixed(digits) : dash;
}

export function percent(share: Maybe, digits = 1): string {
  return known(share) ? `${(100 * share).toFixed(digits)} %` : dash;
}

export function seconds(value: Maybe): string {
  if (!known(value)) return dash;
  if (value < 0) return `-${seconds(-value)}`;
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${(value * 1e6).toFixed(value < 1e-5 ? 1 : 0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.01 ? 2 : value < 0.1 ? 1 : 0)} ms`;
  if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(value / 60);
  const rest = String(Math.floor(value % 60)).padStart(2, "0");
  if (minutes < 120) return `${minutes}:${rest} min`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest} h`;
}

export function milliseconds(value: Maybe): string {
  return known(value) ? seconds(value / 1e3) : dash;
}

function scaled(value: Maybe, units: string[], step: number): string {
  if (!known(value)) return dash;
  let index = 0;
  let rest = value;
  while (Math.abs(rest) >= step && index + 1 < units.length) {
    rest /= step;
    ++index;
  }
  const size = Math.abs(rest);
  return `${index === 0 || size >= 100 ? Math.round(rest) : rest.toFixed(size >= 10 ? 1 : 2)} ${units[index]}`;
}

export function bytes(value: Maybe): string {
  return scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000);
}
export function rate(value: Maybe): string {
  return known(value) ? `${bytes(value)}/s` : dash;
}
export function count(value: Maybe): string {
  return scaled(value, ["", "k", "M", "G"], 1000).trim();
}

// For the ticks of an axis: round values, so no digits that say nothing.
export const tick = {
  plain: (value: number): string => (Math.abs(value) >= 1000 ? whole(value) : String(Number(value.toPrecision(3)))),
  percent: (value: number): string => `${Number((100 * value).toPrecision(4))} %`,
  clock: (value: number): string => {
    if (value < 120) return `${Number(value.toFixed(2))} s`;
    const two = (part: number): string => String(Math.floor(part)).padStart(2, "0");
    return value < 7200 ? `${Math.floor(value / 60)}:${two(value % 60)}` : `${Math.floor(value / 3600)}:${two((value / 60) % 60)} h`;
  },
  bytes: (value: number): string => bytes(value).replace(/\.0*(?= )|(\.\d*?)0+(?= )/, "$1"),
  rate: (value: number): string => `${tick.bytes(value)}/s`,
};

// "2026-11-16 07:41", in the reader's time zone.
export function moment(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return dash;
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function counted(value: number, thing: string): string {
  return `${whole(value)} ${thing}${value === 1 ? "" : "s"}`;
}
