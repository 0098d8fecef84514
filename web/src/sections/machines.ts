// What the run took from its machines: processors, memory, network, and what its ranks sent one another.
import type { Numbers, Run } from "../document";
import { bytes, short } from "../format";
import { lineChart, type Curve, type Scale } from "../charts/line";
import * as scales from "../charts/scales";
import { grid, section } from "./section";

const some = (curves: Curve[]): boolean => curves.some((curve) => curve.y.some((value) => value !== null && value > 0));

function chart(title: string, note: string, scale: Scale, curves: Curve[], describe: string): HTMLElement[] {
  if (!some(curves)) return [];
  const y = { ...scale, label: note, fromZero: true };
  return [lineChart({ title, x: scales.time, y, together: "time", height: 180, describe }, curves.slice(0, 24)).element];
}

function largest(values: Numbers): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

export function machines(run: Run): HTMLElement | null {
  const name = (rank: number): string => `rank ${rank}`;
  const of = (pick: (one: Run["resources"][number]) => Numbers): Curve[] => run.resources.map((one, index) => ({ label: name(one.rank), x: one.t_s, y: pick(one), colour: index }));
  const traffic = (pick: (one: Run["traffic"][number]) => Numbers): Curve[] => run.traffic.map((one, index) => ({ label: name(one.rank), x: one.t_s, y: pick(one), colour: index }));
  // The network is the host's: one curve for each.
  const hosts = run.resources.filter((one, index) => run.resources.findIndex((other) => other.host === one.host) === index);
  const network = (pick: (one: Run["resources"][number]) => Numbers, what: string, from: number): Curve[] => hosts.map((one, index) => ({ label: `${one.host} ${what}`, x: one.t_s, y: pick(one), colour: from + index }));
  const cores = Math.max(0, ...run.resources.map((one) => one.cores));
  const charts = [
    ...chart("Processor", `cores in use${cores ? `, of ${cores}` : ""}`, scales.number, of((one) => one.cpu), `At most ${short(Math.max(0, ...run.resources.map((one) => largest(one.cpu))))} cores.`),
    ...chart("Memory", "resident", scales.memory, of((one) => one.memory_bytes), `At most ${bytes(Math.max(0, ...run.resources.map((one) => largest(one.memory_bytes))))}.`),
    ...chart("Sent by each rank", "messages of the run", scales.speed, traffic((one) => one.sent_bytes_s), "Bytes per second that each rank sent."),
    ...chart("Received by each rank", "messages of the run", scales.speed, traffic((one) => one.received_bytes_s), "Bytes per second that each rank received."),
    ...chart("Network of each host", "without loopback", scales.speed, [...network((one) => one.network_sent_bytes_s, "sent", 0), ...network((one) => one.network_received_bytes_s, "received", hosts.length)], "Bytes per second on the hosts' network interfaces."),
    ...chart("Packets of each host", "per second, without loopback", scales.amount, [...network((one) => one.network_sent_packets_s, "sent", 0), ...network((one) => one.network_received_packets_s, "received", hosts.length)], "Packets per second on the hosts' network interfaces."),
    ...chart("Storage", "read and written", scales.speed, [...of((one) => one.read_bytes_s).map((curve) => ({ ...curve, label: `${curve.label} read` })), ...of((one) => one.written_bytes_s).map((curve) => ({ ...curve, label: `${curve.label} written`, dashed: true }))], "Bytes per second from and to storage."),
    ...chart("Context switches", "per second", scales.amount, of((one) => one.switches_s), "Context switches per second."),
  ];
  if (charts.length === 0) return null;
  return section("Machines and traffic", "", grid(...charts));
}
