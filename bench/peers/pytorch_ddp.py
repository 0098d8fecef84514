"""Whole training steps of one network in PyTorch DistributedDataParallel: processes that share every batch, over gloo.

Starts its processes itself, unless --rank says which of them it is. Ends with one line of JSON.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel

import networks


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, choices=networks.NETWORKS)
    parser.add_argument("--input", required=True, help="CxHxW")
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="of all processes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, required=True, help="of each")
    parser.add_argument("--layout", choices=["nchw", "channels_last"], default="nchw")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--seconds", type=float, default=4, help="time steps for this long, at least three")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before the first that counts")
    parser.add_argument("--rank", type=int, help="be this one; the others are started elsewhere")
    parser.add_argument("--meeting", help="with --rank: a file that all of them can reach, not there yet")
    options = parser.parse_args()
    if (options.rank is None) != (options.meeting is None):
        parser.error("--rank and --meeting go together")
    if options.batch % options.workers:
        parser.error("--batch must be a multiple of --workers")
    return options


def make_optimizer(network):
    """The fastest that this PyTorch has: newer ones can fuse the whole update on a CPU."""
    settings = dict(lr=1e-4, momentum=0.9, weight_decay=1e-4)
    try:
        return torch.optim.SGD(network.parameters(), fused=True, **settings)
    except (TypeError, RuntimeError):
        return torch.optim.SGD(network.parameters(), **settings)


def one_core_each(rank, threads):
    """As Convoy's launcher does it: every process has cores of its own, where there are enough."""
    cores = sorted(os.sched_getaffinity(0))
    own = cores[rank * threads:(rank + 1) * threads]
    if len(own) == threads:
        os.sched_setaffinity(0, own)


def run_rank(options, rank, meeting):
    if options.rank is None:
        one_core_each(rank, options.threads)
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                   world_size=options.workers)
    shape = tuple(int(side) for side in options.input.split("x"))
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    network = networks.make(options.model, shape, options.classes).to(memory_format=layout).train()
    network = DistributedDataParallel(network, gradient_as_bucket_view=True, broadcast_buffers=False)
    count = options.batch // options.workers
    images = torch.randn(count, *shape).to(memory_format=layout)
    labels = torch.randint(options.classes, (count,))
    optimizer = make_optimizer(network)
    loss_of = torch.nn.CrossEntropyLoss()

    def precision():
        if options.precision == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with precision():
            loss = loss_of(network(images), labels)
        loss.backward()
        optimizer.step()
        return time.perf_counter() - begin, loss.item()

    first = [step()[0] for _ in range(options.warm_up)]
    steps = torch.tensor([max(3, int(options.seconds / min(first)))])
    distributed.broadcast(steps, 0)
    times = []
    for _ in range(int(steps)):
        seconds, loss = step()
        times.append(seconds)
    if loss != loss:
        raise SystemExit("error: the loss is not a number")
    distributed.barrier()
    if rank == 0:
        print(json.dumps({
            "best_ms": 1000 * min(times), "median_ms": 1000 * statistics.median(times), "steps": len(times),
            "torch": torch.__version__}), flush=True)


def start_ranks(options):
    """Forks them, before PyTorch has started any thread: what a preloaded library did for this process holds for them, too."""
    with tempfile.TemporaryDirectory(prefix="convoy-ddp-") as folder:
        fork = multiprocessing.get_context("fork")
        ranks = [fork.Process(target=run_rank, args=(options, rank, f"{folder}/meeting"), daemon=True)
                 for rank in range(options.workers)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    codes = [rank.exitcode for rank in ranks]
    if any(codes):
        raise SystemExit(f"error: processes ended with codes {codes}")


def main():
    options = parse()
    if options.rank is None:
        start_ranks(options)
    else:
        run_rank(options, options.rank, options.meeting)


main()
