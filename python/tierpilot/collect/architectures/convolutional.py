"""Networks of convolutions."""

import torch
from torch import nn
from torch.nn import functional

from .task import classification, reconstruction


def _images(draw, batches, sides):
    side = draw.choice(sides)
    return torch.randn(draw.choice(batches), 3, side, side)


def lenet(draw):
    """Two convolutions with pooling, then dense layers."""
    images = _images(draw, [8, 16, 32, 64, 128], [28, 32])
    a, b = draw.choice([6, 16, 32]), draw.choice([16, 32, 64])
    side, inner = ((images.shape[-1] - 4) // 2 - 4) // 2, draw.choice([64, 120, 256])
    model = nn.Sequential(
        nn.Conv2d(3, a, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(a, b, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(b * side * side, inner),
        nn.ReLU(), nn.Linear(inner, 10),
    )  # fmt: skip
    return classification(model, images, 10)


def _normed(before, after, size, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
    )


class _Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first, self.second = _normed(before, after, 3, stride), _normed(after, after, 3)
        same = before == after and stride == 1
        self.past = nn.Identity() if same else _normed(before, after, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.past(x))


def _head(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def resnet(draw):
    """Residual blocks."""
    width, blocks = draw.choice([8, 16, 24, 32]), draw.randint(1, 3)
    layers, before = [_normed(3, width, 3), nn.ReLU()], width
    for stage in range(draw.randint(1, 3)):
        for block in range(blocks):
            after = width * 2**stage
            layers.append(_Residual(before, after, 2 if stage and not block else 1))
            before = after
    return classification(
        nn.Sequential(*layers, *_head(before)), _images(draw, [2, 4, 8, 16, 32], [16, 24, 32]), 10
    )


def mobilenet(draw):
    """Depthwise convolutions between pointwise ones."""
    before = draw.choice([8, 16, 24])
    layers = [_normed(3, before, 3, 2), nn.ReLU6()]
    for block in range(draw.randint(2, 8)):
        after = min(256, before * 2) if block % 2 else before
        layers += [_normed(before, before, 3, 1 + block % 2, before), nn.ReLU6()]
        layers += [_normed(before, after, 1), nn.ReLU6()]
        before = after
    return classification(
        nn.Sequential(*layers, *_head(before)), _images(draw, [2, 4, 8, 16, 32], [32, 48, 64]), 10
    )


class _Dense(nn.Module):
    def __init__(self, channels, growth, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + i * growth), nn.ReLU(),
                nn.Conv2d(channels + i * growth, growth, 3, padding=1, bias=False),
            )  # fmt: skip
            for i in range(layers)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def densenet(draw):
    """Each convolution sees all that came before."""
    channels, growth, layers = 16, draw.choice([4, 8, 12, 16]), draw.randint(2, 6)
    parts = [nn.Conv2d(3, channels, 3, padding=1)]
    for _ in range(draw.randint(1, 2)):
        parts.append(_Dense(channels, growth, layers))
        channels += layers * growth
        parts += [nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2)]
        channels //= 2
    return classification(
        nn.Sequential(*parts, *_head(channels)), _images(draw, [2, 4, 8, 16], [16, 24, 32]), 10
    )


class _Inception(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, width, size, padding=size // 2), nn.ReLU())
            for size in (1, 3, 5)
        )
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(channels, width, 1), nn.ReLU())

    def forward(self, x):
        return torch.cat([*(branch(x) for branch in self.branches), self.pooled(x)], 1)


def inception(draw):
    """Branches of several window sizes."""
    width = draw.choice([4, 8, 16, 24])
    layers, channels = [], 3
    for _ in range(draw.randint(1, 4)):
        layers.append(_Inception(channels, width))
        channels = 4 * width
    return classification(
        nn.Sequential(*layers, *_head(channels)), _images(draw, [2, 4, 8, 16], [16, 24, 32]), 10
    )


class _Excited(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = _normed(channels, channels, 3)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), nn.ReLU(),
            nn.Conv2d(channels // 4, channels, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        made = functional.silu(self.convolution(x))
        return made * self.gate(made)


def squeeze_excite(draw):
    """Channels are scaled by what the whole image says."""
    channels = draw.choice([8, 16, 32, 48])
    layers = [nn.Conv2d(3, channels, 3, padding=1)]
    layers += [_Excited(channels) for _ in range(draw.randint(1, 5))]
    return classification(
        nn.Sequential(*layers, *_head(channels)), _images(draw, [2, 4, 8, 16], [16, 24, 32]), 10
    )


class _UNet(nn.Module):
    def __init__(self, width, levels):
        super().__init__()
        widths = [width * 2**i for i in range(levels + 1)]
        self.down = nn.ModuleList(
            self._twice(before, after) for before, after in zip([3, *widths], widths)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * after, after, 2, stride=2) for after in widths[-2::-1]
        )
        self.merge = nn.ModuleList(self._twice(2 * after, after) for after in widths[-2::-1])
        self.last = nn.Conv2d(width, 3, 1)

    @staticmethod
    def _twice(before, after):
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, merge, past in zip(self.up, self.merge, kept[-2::-1]):
            x = merge(torch.cat([up(x), past], 1))
        return self.last(x)


def unet(draw):
    """Down and up again, with what went past."""
    model = _UNet(draw.choice([4, 8, 16]), draw.randint(1, 3))
    return reconstruction(model, _images(draw, [1, 2, 4, 8], [32, 48, 64]))
