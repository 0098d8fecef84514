"""One case: probe every variant of the peer, then let ours and the peer's fastest take turns."""

import statistics
import sys
import time

from sides import Failure


class Progress:
    """One line on stderr: what runs, how far, how long still. On a terminal it is overwritten."""

    def __init__(self, cases):
        self._cases, self._case, self._begin = cases, 0, time.monotonic()
        self._walls = []  # seconds that each case took

    def begin_case(self):
        if self._case:
            self._walls.append(time.monotonic() - self._case_begin)
        self._case += 1
        self._case_begin = time.monotonic()

    def show(self, case, what, rest):
        """rest: estimated seconds until the case is done; None: unknown yet."""
        now = time.monotonic()
        line = f"case {self._case} of {self._cases}, {case}: {what}; {clock(now - self._begin)} gone"
        if rest is not None:
            # The cases to come take as long as the longest so far, this one included.
            longest = max([now - self._case_begin + rest, *self._walls])
            line += f", about {clock(rest + (self._cases - self._case) * longest)} left"
        print(f"\r\033[K{line}" if sys.stderr.isatty() else f"{line}\n", end="", file=sys.stderr, flush=True)

    def clear(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Comparison:
    """run() measures; result() may be asked for at any time, also after run() was interrupted."""

    def __init__(self, case, sides, options, progress):
        self._case, self._sides, self._options, self._progress = case, sides, options, progress
        self._probes = {}   # peer's side -> its probe
        self._runs = {}     # side -> its repeats
        self._pairs = {}    # precision of ours -> (our side, the peer's side)
        self._failures = {}  # side -> why; it is not run again
        self._done = 0

    def run(self):
        self._progress.begin_case()
        for index, side in enumerate(self._sides.peers):
            what = f"trying {side.name}, variant {index + 1} of {len(self._sides.peers)}"
            self._measure(side, self._options.probe_seconds, what, None)
        self._choose()
        for repeat in range(self._options.repeats):
            waiting = self._working()
            while waiting:
                side = waiting.pop(0)
                rest = self._guess([side, *waiting]) + (self._options.repeats - repeat - 1) * self._guess(self._working())
                self._measure(side, self._options.seconds, f"repeat {repeat + 1} of {self._options.repeats}, {side.name}", rest)
            self._done = repeat + 1

    def _measure(self, side, seconds, what, rest):
        """A side that fails is noted, and the rest goes on."""
        self._progress.show(self._case, what, rest)
        try:
            figures = side.measure(self._case, self._options.threads, seconds)
        except (Failure, OSError, ValueError, KeyError, IndexError) as failure:
            self._failures[side] = f"{side.name}: {failure or type(failure).__name__}"
            return
        if side in self._runs:
            self._runs[side].append(figures)
        else:
            self._probes[side] = figures

    def _choose(self):
        """Against our f32 the peer's fastest f32, against our bf16 its fastest of all."""
        for precision, ours in self._sides.ours.items():
            candidates = self._candidates(precision)
            if candidates:
                self._pairs[precision] = ours, min(candidates, key=lambda side: self._probes[side]["best_ms"])
        alone = [self._sides.alone[precision] for precision in self._pairs if precision in self._sides.alone]
        self._runs = {side: [] for pair in [*self._pairs.values(), alone] for side in pair}

    def _candidates(self, precision):
        return [side for side in self._probes if precision == "bf16" or side.precision == "f32"]

    def _working(self):
        """The sides of those pairs of which neither has failed, each once, in the order of the pairs."""
        whole = [pair for pair in self._pairs.values() if not self._failures.keys() & set(pair)]
        alone = [side for side in self._sides.alone.values() if side in self._runs and side not in self._failures]
        return list(dict.fromkeys(side for pair in [*whole, alone] for side in pair))

    def _guess(self, sides):
        """Seconds that one measurement of each takes: as its last did, else as the slowest probe."""
        longer = max(0, self._options.seconds - self._options.probe_seconds)
        slowest = max(probe["wall_s"] for probe in self._probes.values()) + longer
        return sum(self._runs[side][-1]["wall_s"] if self._runs[side] else slowest for side in sides)

    def result(self):
        pairs = {}
        for precision, (ours, peer) in self._pairs.items():
            if self._runs[ours] and self._runs[peer]:
                pairs[precision] = self._pair(precision, ours, peer)
                self._add_scaling(pairs[precision], self._sides.alone.get(precision))
        case = self._case
        return {
            "case": str(case), "model": case.model, "input": case.input, "batch": case.batch, "pairs": pairs,
            "failures": list(self._failures.values()),
            "repeats": {"done": self._done, "planned": self._options.repeats},
            "probes": {side.name: probe for side, probe in self._probes.items()}}

    def _pair(self, precision, ours, peer):
        # A step of the probe may be the peer's best, so that no variant was ever seen faster than the one that counts.
        one, other = self._summary(ours), self._summary(peer, self._probes[peer])
        thrifty = min(self._probes[side]["rss_bytes"] for side in self._candidates(precision))
        thrifty = min(thrifty, *(run["rss_bytes"] for run in self._runs[peer]))
        return {
            "convoy": one, "pytorch": other, "ratio_best": other["best_ms"] / one["best_ms"],
            "ratio_median": other["median_ms"] / one["median_ms"], "ratio_rss": one["peak_rss_bytes"] / thrifty}

    def _add_scaling(self, pair, alone):
        """How many times faster several workers of ours are than one."""
        if self._runs.get(alone):
            one, all_of_them = self._summary(alone), pair["convoy"]
            pair |= {"alone": one, "scaling_best": one["best_ms"] / all_of_them["best_ms"],
                     "scaling_median": one["median_ms"] / all_of_them["median_ms"]}

    def _summary(self, side, *probe):
        """Over the repeats of one side."""
        runs = self._runs[side]
        best = min(run["best_ms"] for run in [*runs, *probe])
        median = statistics.median(run["median_ms"] for run in runs)
        batch = self._case.batch
        return {
            "side": side.name, "best_images_per_s": 1000 * batch / best, "median_images_per_s": 1000 * batch / median,
            "best_ms": best, "median_ms": median, "peak_rss_bytes": max(run["rss_bytes"] for run in runs), "runs": runs}
