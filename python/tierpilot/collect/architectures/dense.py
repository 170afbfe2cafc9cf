"""Networks of matrix products."""

import torch
from torch import nn
from torch.nn import functional

from .task import classification, reconstruction


def _widths(draw, least, most, layers):
    return [draw.choice(range(least, most + 1, 16)) for _ in range(layers)]


def mlp(draw):
    """Multi-layer perceptron."""
    batch, given = draw.choice([16, 32, 64, 128, 256, 512]), draw.choice([32, 128, 784, 1024])
    layers, before = [], given
    for width in _widths(draw, 32, 1024, draw.randint(1, 6)):
        layers += [nn.Linear(before, width), nn.ReLU()]
        before = width
    model = nn.Sequential(*layers, nn.Linear(before, 10))
    return classification(model, torch.randn(batch, given), 10)


def autoencoder(draw):
    """Halves its width with batch norm, and doubles it again."""
    batch, given = draw.choice([32, 64, 128, 256]), draw.choice([256, 512, 784, 1536])
    widths = [given // 2**i for i in range(draw.randint(2, 5))]
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.Tanh()]
    for before, after in zip(widths[::-1], widths[-2::-1]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return reconstruction(nn.Sequential(*layers[:-1]), torch.rand(batch, given))


class _Variational(nn.Module):
    def __init__(self, given, width, latent):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(given, width), nn.Softplus())
        self.mean, self.spread = nn.Linear(width, latent), nn.Linear(width, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, width), nn.Softplus(), nn.Linear(width, given), nn.Sigmoid()
        )

    def forward(self, x):
        hidden = self.encode(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        return self.decode(mean + torch.randn_like(mean) * torch.exp(0.5 * spread))


def variational(draw):
    """Variational autoencoder."""
    batch, given = draw.choice([32, 64, 128, 256]), draw.choice([128, 784, 1200])
    model = _Variational(given, draw.choice([64, 256, 512, 800]), draw.choice([8, 32, 64]))
    return reconstruction(model, torch.rand(batch, given))


class _Block(nn.Module):
    def __init__(self, tokens, channels, inner_tokens, inner_channels):
        super().__init__()
        self.first, self.second = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.tokens = nn.Sequential(
            nn.Linear(tokens, inner_tokens), nn.GELU(), nn.Linear(inner_tokens, tokens)
        )
        self.channels = nn.Sequential(
            nn.Linear(channels, inner_channels), nn.GELU(), nn.Linear(inner_channels, channels)
        )

    def forward(self, x):
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class _Mixer(nn.Module):
    def __init__(self, patch, side, channels, blocks):
        super().__init__()
        self.patches = nn.Conv2d(3, channels, patch, stride=patch)
        tokens = (side // patch) ** 2
        self.blocks = nn.Sequential(
            *(_Block(tokens, channels, max(16, tokens // 2), channels * 2) for _ in range(blocks))
        )
        self.last = nn.Linear(channels, 10)

    def forward(self, x):
        return self.last(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


def mixer(draw):
    """MLP-Mixer."""
    side = draw.choice([32, 48])
    model = _Mixer(draw.choice([4, 8]), side, draw.choice([32, 64, 128]), draw.randint(1, 6))
    return classification(model, torch.randn(draw.choice([4, 8, 16, 32]), 3, side, side), 10)


class _Gated(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            value, gate = layer(x).chunk(2, dim=1)
            gate = torch.sigmoid(gate)
            x = functional.elu(value) * gate + x * (1 - gate)
        return self.last(x)


def highway(draw):
    """Layers with gates beside what goes past them."""
    width = draw.choice([32, 64, 128, 256, 512])
    model = _Gated(width, draw.randint(2, 14))
    return classification(model, torch.randn(draw.choice([16, 32, 64, 128, 256]), width), 10)
