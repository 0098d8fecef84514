// Documents with made-up numbers, for the tests of the page. The same seed gives the same document.
import type { Document, Layer, Numbers, Rank, Run, Span } from "../src/document";

export interface Wish {
  id?: string;
  name?: string;
  workers?: number;
  servers?: number;
  batch?: number;
  seed?: number;
  steps?: number;
  state?: Run["state"];
  algorithm?: string;
}

function random(seed: number): () => number {
  let state = seed * 2654435761 + 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const phases = ["load", "forward", "backward", "communication", "wait", "update", "checkpoint", "evaluate", "other"];
const network: [string, string, string, number, number, number][] = [
  ["conv1", "conv", "32x26x26", 320, 0.42, 0.61],
  ["pool1", "max_pool", "32x13x13", 0, 0.11, 0.13],
  ["conv2", "conv", "128x11x11", 36992, 0.93, 1.72],
  ["pool2", "max_pool", "128x5x5", 0, 0.08, 0.1],
  ["conv3", "conv", "256x3x3", 295168, 0.71, 1.38],
  ["pool3", "max_pool", "256x1x1", 0, 0.02, 0.02],
  ["fc1", "dense", "1000", 257000, 0.19, 0.33],
  ["fc2", "dense", "100", 100100, 0.08, 0.14],
  ["fc3", "dense", "10", 1010, 0.03, 0.05],
];

function ranksOf(wish: Required<Wish>, wall: number, draw: () => number): Rank[] {
  const all = wish.workers + wish.servers;
  return Array.from({ length: all }, (_, rank) => {
    const server = rank >= wish.workers;
    const waiting = wish.workers === 1 ? 0 : rank === 1 ? 0.02 : 0.13 + 0.03 * draw();
    const share = server ? [0, 0, 0, 0.2, 0.7, 0.06, 0, 0, 0.04] : [0.02, 0.25, 0.46, wish.workers > 1 ? 0.05 : 0, waiting, 0.06, 0.01, 0.04, 0.02];
    const sum = share.reduce((a, b) => a + b, 0);
    const phases_s = share.map((one) => (one / sum) * wall);
    return {
      rank,
      role: server ? "server" : "worker",
      host: `node${rank % 2}`,
      wall_s: wall,
      phases_s,
      waits: wish.workers === 1 ? [] : [
        { rank: 1, seconds: phases_s[4]! * 0.8, count: 900, layer: "conv2" },
        { rank: 0, seconds: phases_s[4]! * 0.2, count: 300, layer: "" },
      ],
    };
  });
}

function spansOf(workers: number): Span[] {
  const spans: Span[] = [];
  for (let rank = 0; rank < workers; ++rank) {
    let at = rank * 0.05;
    const slow = rank === 1 ? 1.15 : 1;
    const add = (lane: string, name: string, start_ms: number, ms: number, bytes: number | null = null): void => {
      spans.push({ rank, lane, name, start_ms, ms, bytes, peer: null });
    };
    add("compute", "load", at, 0.12);
    at += 0.12;
    for (const [name, , , , forward] of network) {
      if (workers > 1 && name === "conv2" && rank !== 1) {
        add("compute", "wait", at, 0.7);
        at += 0.7;
      }
      add("compute", `forward ${name}`, at, forward * slow);
      at += forward * slow;
    }
    for (const [name, , , parameters, , backward] of [...network].reverse()) {
      add("compute", `backward ${name}`, at, backward * slow);
      at += backward * slow;
      if (workers > 1 && parameters > 1000) add("communication", "all-reduce", at + 0.05, parameters / 5e5 + 0.08, parameters * 4);
      if (parameters > 0) add("optimizer", `update ${name}`, at + parameters / 5e5 + 0.2, parameters / 3e6 + 0.01);
    }
  }
  return spans;
}

function stepsOf(wish: Required<Wish>, speed: number, draw: () => number): Run["steps_table"] {
  const rows = Math.min(700, wish.steps);
  const table: Run["steps_table"] = { step: [], t_s: [], loss: [], loss_min: [], loss_max: [], accuracy: [], images_per_s: [], images_per_s_min: [], images_per_s_max: [] };
  for (let row = 1; row <= rows; ++row) {
    const step = Math.round((row * wish.steps) / rows);
    const loss = 0.035 + 2.25 * Math.exp(-step / 90) + 0.16 * Math.exp(-step / 600) + 0.02 * draw();
    const jitter = 0.9 + 0.14 * draw();
    table.step.push(step);
    table.t_s.push((step * wish.batch) / speed);
    table.loss.push(loss);
    table.loss_min.push(loss * (0.62 + 0.1 * draw()));
    table.loss_max.push(loss * (1.3 + 0.4 * draw()));
    table.accuracy.push(1 - Math.min(0.9, loss * 0.33));
    table.images_per_s.push(speed * jitter);
    table.images_per_s_min.push(speed * jitter * 0.8);
    table.images_per_s_max.push(speed * jitter * 1.12);
  }
  return table;
}

export function madeUpRun(given: Wish = {}): Run {
  const wish: Required<Wish> = { id: "1", name: "", workers: 2, servers: 0, batch: 128, seed: 1, steps: 1407, state: "finished", algorithm: "ring", ...given };
  if (wish.name === "") wish.name = `mnist_cnn-mnist-${wish.id}`;
  const draw = random(wish.seed * 1000 + wish.workers);
  const speed = 14500 * wish.workers ** 0.86 * (0.96 + 0.08 * draw());
  const wall = (wish.steps * wish.batch) / speed + 0.8;
  const seconds = Array.from({ length: Math.max(4, Math.min(200, Math.floor(wall * 4))) }, (_, index) => (index * wall) / Math.max(4, Math.min(200, Math.floor(wall * 4))));
  const series = (mean: number, noise: number): Numbers => seconds.map(() => mean * (1 - noise / 2 + noise * draw()));
  const epochs = [1, 2, 3];
  const ranks = ranksOf(wish, wall, draw);
  const layers: Layer[] = network.map(([name, kind, output, parameters, forward_ms, backward_ms]) => ({ name, kind, output, parameters, forward_ms, backward_ms, wait_ms: name === "conv2" && wish.workers > 1 ? 0.55 : null }));
  const accuracy = 0.9896 - 0.0007 * wish.workers;
  return {
    id: wish.id, name: wish.name, state: wish.state, reason: "", started: "2026-01-31T12:00:00Z", wall_s: wall,
    model: "mnist_cnn", data: "mnist", precision: "bf16", workers: wish.workers, servers: wish.servers, sync: wish.servers ? "async" : "allreduce",
    algorithm: wish.algorithm, transport: "shm", wire: "f32", world: "real", batch: wish.batch, epochs: 3, seed: wish.seed, threads: 1, parameters: 690590,
    steps: wish.steps, epochs_done: 3, images_per_s: speed, test_accuracy: accuracy, test_loss: 0.0361, train_loss: 0.0372, communication_share: wish.workers > 1 ? 0.146 : 0,
    verdict: wish.workers > 1 ? "Communication is 14.6 % of each step: rank 0 waits for rank 1, mostly before conv2. Two workers train 1.8 times as fast as one." : "All of the time goes into computation: backward is 54 % of it.",
    data_seen: { seen: 60000, missing: 0, twice: 0 },
    steps_table: stepsOf(wish, speed, draw),
    epochs_table: { epoch: epochs, step: epochs.map((epoch) => Math.round((epoch * wish.steps) / 3)), t_s: epochs.map((epoch) => (epoch * wall) / 3), seconds: epochs.map(() => wall / 3), train_loss: [0.21, 0.06, 0.037], train_accuracy: [0.93, 0.98, 0.989], test_loss: [0.075, 0.043, 0.0361], test_accuracy: [0.976, 0.987, accuracy] },
    phases, ranks,
    timeline: { step: 257, length_ms: 9.4, spans: spansOf(Math.min(4, wish.workers)) },
    staleness: wish.servers ? { epoch: epochs, mean: [0.6, 1.1, 1.3], max: [2, 4, 4], counts: [310, 540, 420, 95, 42] } : null,
    idleness: wish.workers > 1 ? ranks.filter((rank) => rank.role === "worker").map((rank) => ({ rank: rank.rank, epoch: epochs, share: epochs.map(() => 0.1 + 0.1 * draw()) })) : [],
    resources: ranks.map((rank) => ({ rank: rank.rank, host: rank.host, cores: 2, t_s: seconds, cpu: series(0.96, 0.08), host_cpu: series(1.9, 0.1), memory_bytes: series(310e6 + rank.rank * 12e6, 0.01), read_bytes_s: series(0, 0), written_bytes_s: series(1e6, 1), switches_s: series(900, 0.5), network_sent_bytes_s: series(3.1e7, 0.2), network_received_bytes_s: series(3.0e7, 0.2), network_sent_packets_s: series(21000, 0.2), network_received_packets_s: series(20500, 0.2) })),
    traffic: wish.workers > 1 ? ranks.map((rank) => ({ rank: rank.rank, t_s: seconds, sent_bytes_s: series(2.8e8 + rank.rank * 1e7, 0.2), received_bytes_s: series(2.8e8, 0.2), sent_messages_s: series(4000, 0.2), received_messages_s: series(4000, 0.2) })) : [],
    latencies: wish.workers > 1 ? [{ operation: "all-reduce", count: wish.steps * 4, mean_s: 0.00041, least_s: 0.00009, most_s: 0.0063, bytes: wish.steps * 690590 * 4 }] : [],
    happenings: [{ t_s: 0.2, rank: 0, kind: "plan", text: "4 buckets of 0.7 MiB, as they come" }, { t_s: wall, rank: 0, kind: "checkpoint", text: "final.safetensors" }],
    layers, weights_sha256: "ad9a5a81dfa3c72fb38bdd8d1d7888f1aa227dc6df1f8de758a2795e8920dd9f",
    configuration: { model: "mnist_cnn", data: "mnist", optimizer: "adam", lr: 0.001, batch: wish.batch, epochs: 3, workers: wish.workers, seed: wish.seed, momentum: 0.9, schedule: "cosine", wire: "f32" },
    configuration_given: ["model", "data", "optimizer", "lr", "epochs", "workers"],
    environment: { commit: "0123abc", compiler: "gcc 12.2.0", cpu: "Xeon", cores: 2, libraries: { fmt: "9.1.0", onednn: "2.6.3" } },
  };
}

export function madeUp(wishes: Wish[]): Document {
  return { format: 1, generated: "2026-01-31T12:01:00Z", program: "convoy 0.1.0", runs: wishes.map((wish, index) => madeUpRun({ id: String(index + 1), ...wish })) };
}

// The page with a document inside, as src/report/html.cc makes it.
export function embed(page: string, content: Document): string {
  const text = JSON.stringify(content).replaceAll("<", "\\u003c");
  return page.replace(/(<script id="convoy-document"[^>]*>)null(<\/script>)/, (_, open: string, close: string) => open + text + close);
}
