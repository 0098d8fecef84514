"""The zoo's networks in plain PyTorch, layer for layer as `convoy zoo` has them, so that no torchvision is needed.

make(name, input, classes) gives the module. Inputs up to 64 pixels get the small-image variants.
"""

import torch
from torch import nn

# (name, input, classes) -> trained parameters. make() refuses a network that differs.
PARAMETERS = {
    ("shallow", (1, 28, 28), 10): 431_080,
    ("mnist_cnn", (1, 28, 28), 10): 690_590,
    ("resnet18", (3, 32, 32), 10): 11_173_962,
    ("resnet18", (3, 224, 224), 1000): 11_689_512,
    ("vgg16", (3, 32, 32), 10): 14_719_818,
    ("resnet50", (3, 224, 224), 1000): 25_557_032,
    ("resnet152", (3, 224, 224), 1000): 60_192_808,
    ("inception_v1", (3, 224, 224), 1000): 6_624_904,
    ("alexnet", (3, 224, 224), 1000): 61_100_840,
    ("vgg16", (3, 224, 224), 1000): 138_357_544,
    ("vgg19", (3, 224, 224), 1000): 143_667_240,
}


def relu():
    return nn.ReLU(inplace=True)


def shallow(input, classes):
    side = ((input[1] - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(input[0], 20, 5), relu(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), relu(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(50 * side * side, 500), relu(), nn.Linear(500, classes))


def mnist_cnn(input, classes):
    layers, channels, side = [], input[0], input[1]
    for out in (32, 128, 256):
        layers += [nn.Conv2d(channels, out, 3), relu(), nn.MaxPool2d(2)]
        channels, side = out, (side - 2) // 2
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Dropout(0.25), nn.Linear(256 * side * side, 1000), relu(),
        nn.Linear(1000, 100), relu(), nn.Linear(100, classes))


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)), a block of a ResNet."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = 4 * width if bottleneck else width
        # (output channels, kernel, stride) of each convolution; each but the last is followed by ReLU
        plan = [(width, 1, 1), (width, 3, stride), (out, 1, 1)] if bottleneck else [(width, 3, stride), (out, 3, 1)]
        body, at = [], channels
        for index, (to, kernel, step) in enumerate(plan):
            body += [nn.Conv2d(at, to, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(to)]
            if index + 1 < len(plan):
                body.append(relu())
            at = to
        self.body = nn.Sequential(*body)
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.relu = relu()

    def forward(self, x):
        shortcut = x if self.shortcut is None else self.shortcut(x)
        y = self.body(x)
        y += shortcut
        return self.relu(y)


def resnet(blocks, bottleneck):
    def build(input, classes):
        if max(input[1:]) <= 64:
            layers = [nn.Conv2d(input[0], 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), relu()]
        else:
            layers = [nn.Conv2d(input[0], 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), relu(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for stage, count in enumerate(blocks):
            for block in range(count):
                width = 64 << stage
                layers.append(Residual(channels, width, 2 if stage and not block else 1, bottleneck))
                channels = 4 * width if bottleneck else width
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))

    return build


def convolution(channels, out, kernel, stride=1):
    return nn.Sequential(
        nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out, eps=0.001), relu())


class Inception(nn.Module):
    """Four branches, joined along channels."""

    def __init__(self, channels, one, reduce2, two, reduce3, three, four):
        super().__init__()
        self.branches = nn.ModuleList([
            convolution(channels, one, 1),
            nn.Sequential(convolution(channels, reduce2, 1), convolution(reduce2, two, 3)),
            nn.Sequential(convolution(channels, reduce3, 1), convolution(reduce3, three, 3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), convolution(channels, four, 1))])
        self.channels = one + two + three + four

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


INCEPTION_STAGES = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
     (256, 160, 320, 32, 128, 128)),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)))


def inception_v1(input, classes):
    def halve(kernel):
        return nn.MaxPool2d(kernel, 2, ceil_mode=True)

    if max(input[1:]) <= 64:
        layers = [convolution(input[0], 64, 3)]
    else:
        layers = [convolution(input[0], 64, 7, 2), halve(3)]
    layers += [convolution(64, 64, 1), convolution(64, 192, 3)]
    channels = 192
    for stage, kernel in zip(INCEPTION_STAGES, (3, 3, 2)):
        layers.append(halve(kernel))
        for module in stage:
            layers.append(Inception(channels, *module))
            channels = layers[-1].channels
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(channels, classes))


def alexnet(input, classes):
    small = max(input[1:]) <= 64
    stem = nn.Conv2d(input[0], 64, 5, 1, 2) if small else nn.Conv2d(input[0], 64, 11, 4, 2)
    head = 3 if small else 6
    return nn.Sequential(
        stem, relu(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, 1, 2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, 1, 1), relu(), nn.Conv2d(384, 256, 3, 1, 1), relu(),
        nn.Conv2d(256, 256, 3, 1, 1), relu(), nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(head), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(256 * head * head, 4096), relu(),
        nn.Dropout(0.5), nn.Linear(4096, 4096), relu(), nn.Linear(4096, classes))


def vgg(convolutions):
    def build(input, classes):
        small = max(input[1:]) <= 64
        layers, channels = [], input[0]
        for count, out in zip(convolutions, (64, 128, 256, 512, 512)):
            for _ in range(count):
                layers += [nn.Conv2d(channels, out, 3, 1, 1), relu()]
                channels = out
            layers.append(nn.MaxPool2d(2, ceil_mode=small))
        if small:
            return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), relu(), nn.Dropout(0.5),
            nn.Linear(4096, 4096), relu(), nn.Dropout(0.5), nn.Linear(4096, classes))

    return build


NETWORKS = {
    "shallow": shallow,
    "mnist_cnn": mnist_cnn,
    "resnet18": resnet((2, 2, 2, 2), bottleneck=False),
    "resnet34": resnet((3, 4, 6, 3), bottleneck=False),
    "resnet50": resnet((3, 4, 6, 3), bottleneck=True),
    "resnet101": resnet((3, 4, 23, 3), bottleneck=True),
    "resnet152": resnet((3, 8, 36, 3), bottleneck=True),
    "inception_v1": inception_v1,
    "alexnet": alexnet,
    "vgg16": vgg((2, 2, 3, 3, 3)),
    "vgg19": vgg((2, 2, 4, 4, 4)),
}


def make(name, input, classes):
    network = NETWORKS[name](input, classes)
    count = sum(parameter.numel() for parameter in network.parameters())
    expected = PARAMETERS.get((name, tuple(input), classes))
    if expected is not None and count != expected:
        raise AssertionError(f"{name} has {count} parameters, not {expected}")
    return network


if __name__ == "__main__":
    for case, expected in PARAMETERS.items():
        make(*case)
        print(f"{case[0]:<14}{'x'.join(map(str, case[1])):<12}{expected:>12,} parameters")
