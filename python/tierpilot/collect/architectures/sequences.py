"""Networks over sequences."""

import torch
from torch import nn
from torch.nn import functional

from .task import Task, classification, next_words


class _LastOf(nn.Module):
    def __init__(self, recurrent, width):
        super().__init__()
        self.recurrent, self.last = recurrent, nn.Linear(width, 10)

    def forward(self, x):
        return self.last(self.recurrent(x)[0][:, -1])


def _recurrent(kind, draw):
    given, width = draw.choice([8, 32, 64, 128]), draw.choice([16, 32, 64, 128, 256])
    both_ways = draw.random() < 0.3
    layer = kind(given, width, draw.randint(1, 2), batch_first=True, bidirectional=both_ways)
    sequences = torch.randn(draw.choice([4, 8, 16, 32, 64]), draw.choice([8, 16, 32, 64]), given)
    return classification(_LastOf(layer, width * (1 + both_ways)), sequences, 10)


def lstm(draw):
    """Long short-term memory."""
    return _recurrent(nn.LSTM, draw)


def gru(draw):
    """Gated recurrent units."""
    return _recurrent(nn.GRU, draw)


class _Tagger(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.recurrent = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.drop, self.last = nn.Dropout(), nn.Linear(2 * width, 20)

    def forward(self, tokens):
        return self.last(self.drop(self.recurrent(self.words(tokens))[0])).flatten(0, 1)


def tagger(draw):
    """A tag for each word, read both ways."""
    words, width = draw.choice([500, 2000, 10000]), draw.choice([16, 32, 64, 128])
    tokens = torch.randint(0, words, (draw.choice([4, 8, 16, 32]), draw.choice([8, 16, 32, 64])))
    wanted = torch.randint(0, 20, (tokens.numel(),))
    return Task(
        _Tagger(words, width),
        (tokens,),
        functional.cross_entropy,
        len(tokens),
        wanted,
    )


class _Translator(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.reads, self.writes = nn.GRUCell(width, width), nn.GRUCell(width, width)
        self.last = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.words(tokens)
        hidden = x.new_zeros(x[:, 0].shape)
        for step in range(x.shape[1]):
            hidden = self.reads(x[:, step], hidden)
        made = []
        for step in range(x.shape[1]):
            hidden = self.writes(x[:, step], hidden)
            made.append(hidden)
        return self.last(torch.stack(made, 1))


def translator(draw):
    """One recurrent cell reads, another one writes."""
    words, width = draw.choice([100, 500, 2000]), draw.choice([16, 32, 64, 128])
    tokens = torch.randint(0, words, (draw.choice([4, 8, 16, 32]), draw.choice([4, 8, 16, 24])))
    return next_words(_Translator(words, width), tokens)


class _Elman(nn.Module):
    """A simple recurrent network by hand, step by step."""

    def __init__(self, given, width):
        super().__init__()
        self.cell, self.last = nn.RNNCell(given, width), nn.Linear(width, 10)

    def forward(self, x):
        hidden, made = None, []
        for step in range(x.shape[1]):
            hidden = self.cell(x[:, step], hidden)
            made.append(self.last(hidden))
        return torch.stack(made, 1).mean(1)


def elman(draw):
    """A recurrent cell called by a loop."""
    given = draw.choice([16, 64, 128])
    model = _Elman(given, draw.choice([16, 64, 128, 256]))
    sequences = torch.randn(draw.choice([4, 8, 16, 32, 64]), draw.choice([8, 16, 32]), given)
    return classification(model, sequences, 10)


def encoder(draw):
    """Attention encoder."""
    width = draw.choice([32, 64, 128])
    layer = nn.TransformerEncoderLayer(
        width, draw.choice([2, 4]), 4 * width, dropout=0.1, batch_first=True
    )
    layers, batch, length = draw.randint(1, 4), draw.choice([2, 4, 8, 16]), draw.choice([16, 32, 64])
    model = nn.Sequential(
        nn.TransformerEncoder(layer, layers), nn.Flatten(), nn.Linear(width * length, 10)
    )
    return classification(model, torch.randn(batch, length, width), 10)


class _Decoder(nn.Module):
    def __init__(self, words, width, heads, layers, length):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.takes = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.gives = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers)
        )
        self.last = nn.Linear(width, words, bias=False)
        self.register_buffer("hidden", torch.ones(length, length).triu(1).bool())

    def _attend(self, x, take, give):
        batch, length, width = x.shape
        shape = batch, length, self.heads, width // self.heads
        q, k, v = (part.view(shape).transpose(1, 2) for part in take(x).chunk(3, 2))
        weights = (q @ k.transpose(2, 3)) / shape[-1] ** 0.5
        weights = weights.masked_fill(self.hidden, float("-inf")).softmax(-1)
        return give((weights @ v).transpose(1, 2).reshape(x.shape))

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for i, inner in enumerate(self.inner):
            x = x + self._attend(self.norms[2 * i](x), self.takes[i], self.gives[i])
            x = x + inner(self.norms[2 * i + 1](x))
        return self.last(x)


def decoder(draw):
    """A language model with causal attention."""
    words, length = draw.choice([100, 500, 2000]), draw.choice([16, 32, 64])
    model = _Decoder(words, draw.choice([32, 64, 128]), draw.choice([2, 4]), draw.randint(1, 4), length)
    tokens = torch.randint(0, words, (draw.choice([1, 2, 4, 8]), length))
    return next_words(model, tokens)


class _Causal(nn.Module):
    def __init__(self, before, after, size, apart):
        super().__init__()
        self.padding = (size - 1) * apart
        self.first = nn.Conv1d(before, after, size, dilation=apart)
        self.second = nn.Conv1d(after, after, size, dilation=apart)
        self.past = nn.Conv1d(before, after, 1) if before != after else nn.Identity()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        made = x
        for layer in (self.first, self.second):
            made = self.drop(functional.relu(layer(functional.pad(made, (self.padding, 0)))))
        return functional.relu(made + self.past(x))


def tcn(draw):
    """Dilated convolutions over time."""
    before = draw.choice([4, 16, 32])
    width, layers = draw.choice([16, 32, 64]), []
    series = torch.randn(draw.choice([4, 8, 16, 32]), before, draw.choice([32, 64, 128, 256]))
    for level in range(draw.randint(1, 5)):
        layers.append(_Causal(before, width, draw.choice([2, 3]), 2**level))
        before = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 10))
    return classification(model, series, 10)


class _TextCnn(nn.Module):
    def __init__(self, words, width, filters):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.windows = nn.ModuleList(nn.Conv1d(width, filters, size) for size in (3, 4, 5))
        self.drop, self.last = nn.Dropout(), nn.Linear(3 * filters, 10)

    def forward(self, tokens):
        x = self.words(tokens).transpose(1, 2)
        made = [functional.relu(window(x)).amax(2) for window in self.windows]
        return self.last(self.drop(torch.cat(made, 1)))


def text_cnn(draw):
    """Windows over words."""
    words = draw.choice([1000, 5000, 20000])
    model = _TextCnn(words, draw.choice([16, 64, 128]), draw.choice([16, 50, 100]))
    tokens = torch.randint(0, words, (draw.choice([8, 16, 32, 64]), draw.choice([16, 32, 64, 128])))
    return classification(model, tokens, 10)
