"""Whole training steps of one network in PyTorch: forward, loss, backward, SGD with momentum. Ends with one line of JSON."""

import argparse
import contextlib
import json
import statistics
import time

import torch

import networks


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, choices=networks.NETWORKS)
    parser.add_argument("--input", required=True, help="CxHxW")
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--layout", choices=["nchw", "channels_last"], default="nchw")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--seconds", type=float, default=4, help="time steps for this long, at least three")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before the first that counts")
    return parser.parse_args()


def make_optimizer(network):
    """The fastest that this PyTorch has: newer ones can fuse the whole update on a CPU."""
    settings = dict(lr=1e-4, momentum=0.9, weight_decay=1e-4)
    try:
        return torch.optim.SGD(network.parameters(), fused=True, **settings)
    except (TypeError, RuntimeError):
        return torch.optim.SGD(network.parameters(), **settings)


def main():
    options = parse()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    shape = tuple(int(side) for side in options.input.split("x"))
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    network = networks.make(options.model, shape, options.classes).to(memory_format=layout).train()
    images = torch.randn(options.batch, *shape).to(memory_format=layout)
    labels = torch.randint(options.classes, (options.batch,))
    optimizer = make_optimizer(network)
    loss_of = torch.nn.CrossEntropyLoss()

    def precision():
        if options.precision == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision():
            loss = loss_of(network(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(options.warm_up):
        step()
    times, end = [], time.perf_counter() + options.seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
    if loss != loss:
        raise SystemExit("error: the loss is not a number")
    print(json.dumps({
        "best_ms": 1000 * min(times), "median_ms": 1000 * statistics.median(times), "steps": len(times),
        "torch": torch.__version__}))


main()
