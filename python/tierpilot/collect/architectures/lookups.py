"""Networks that look things up: tables and graphs."""

import torch
from torch import nn
from torch.nn import functional

from .task import Task, classification


class _Recommender(nn.Module):
    def __init__(self, tables, words, width, inner, dense):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(words, width, mode="sum") for _ in range(tables))
        self.dense = nn.Sequential(nn.Linear(dense, inner), nn.ReLU(), nn.Linear(inner, width))
        pairs = (tables + 1) ** 2
        self.last = nn.Sequential(nn.Linear(pairs + width, inner), nn.ReLU(), nn.Linear(inner, 1))

    def forward(self, dense, lookups):
        x = self.dense(dense)
        vectors = torch.stack([x, *(t(lookups[:, i]) for i, t in enumerate(self.tables))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.last(torch.cat([x, products], 1)).squeeze(1)


def recommender(draw):
    """Sums of table rows, products of them, and dense layers."""
    tables, words, dense = draw.randint(2, 10), draw.choice([500, 2000, 10000]), 13
    model = _Recommender(tables, words, draw.choice([8, 16, 32]), draw.choice([32, 64, 256]), dense)
    batch = draw.choice([32, 64, 128, 256, 512])
    lookups = torch.randint(0, words, (batch, tables, draw.choice([1, 4, 10])))
    wanted = torch.rand(batch).round()
    return Task(
        model,
        (torch.randn(batch, dense), lookups),
        functional.binary_cross_entropy_with_logits,
        batch,
        wanted,
    )


class _Factors(nn.Module):
    def __init__(self, users, things, width):
        super().__init__()
        self.users, self.things = nn.Embedding(users, width), nn.Embedding(things, width)
        self.user_bias, self.thing_bias = nn.Embedding(users, 1), nn.Embedding(things, 1)

    def forward(self, users, things):
        products = (self.users(users) * self.things(things)).sum(1)
        return products + self.user_bias(users).squeeze(1) + self.thing_bias(things).squeeze(1)


def factorisation(draw):
    """Products of the rows of users and of things."""
    users, things = draw.choice([500, 2000, 10000, 30000]), draw.choice([500, 2000, 10000])
    batch = draw.choice([64, 256, 1024, 4096])
    wanted = torch.rand(batch)
    return Task(
        _Factors(users, things, draw.choice([8, 16, 32, 64, 128])),
        (torch.randint(0, users, (batch,)), torch.randint(0, things, (batch,))),
        functional.mse_loss,
        batch,
        wanted,
    )


class _Bag(nn.Module):
    def __init__(self, words, width, inner):
        super().__init__()
        self.words = nn.EmbeddingBag(words, width)
        self.rest = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, 10))

    def forward(self, tokens):
        return self.rest(self.words(tokens))


def bag_of_words(draw):
    """The mean of words' rows, and dense layers."""
    words, width = draw.choice([1000, 5000, 20000]), draw.choice([8, 16, 64, 128])
    model = _Bag(words, width, draw.choice([32, 128, 512]))
    tokens = torch.randint(0, words, (draw.choice([16, 64, 256]), draw.choice([8, 32, 128])))
    return classification(model, tokens, 10)


class _SkipGram(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.centre, self.context = nn.Embedding(words, width), nn.Embedding(words, width)

    def forward(self, centre, context):
        products = torch.bmm(self.context(context), self.centre(centre).unsqueeze(2))
        return functional.logsigmoid(products.squeeze(2))


def skip_gram(draw):
    """Two tables of words and products of their rows."""
    words, batch = draw.choice([1000, 5000, 20000]), draw.choice([64, 128, 256, 512, 1024])
    centre, context = torch.randint(0, words, (batch,)), torch.randint(0, words, (batch, 6))
    model = _SkipGram(words, draw.choice([16, 32, 64, 100]))
    return Task(model, (centre, context), lambda made, _: -made.mean(), batch)


class _GraphConvolution(nn.Module):
    def __init__(self, edges, nodes, widths):
        super().__init__()
        self.register_buffer("source", edges[0])
        self.register_buffer("target", edges[1])
        self.nodes = nodes
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            sent = layer(x)[self.source]
            x = x.new_zeros(self.nodes, sent.shape[1]).index_add(0, self.target, sent)
            if i + 1 < len(self.layers):
                x = functional.relu(x)
        return x


def _on_graph(model, features):
    """A class for each node of the one graph."""
    task = classification(model, features, 10)
    task.grows = False
    return task


def _edges(draw, nodes):
    return torch.randint(0, nodes, (2, nodes * draw.choice([2, 4, 8])))


def graph_convolution(draw):
    """Each node sums what its neighbours send, by gather and scatter."""
    nodes, layers = draw.choice([200, 500, 1000, 2000]), draw.randint(1, 3)
    widths = [draw.choice([16, 64, 128]), *[draw.choice([16, 32, 64])] * layers, 10]
    model = _GraphConvolution(_edges(draw, nodes), nodes, widths)
    return _on_graph(model, torch.randn(nodes, widths[0]))


class _Propagation(nn.Module):
    def __init__(self, adjacency, widths, hops):
        super().__init__()
        self.adjacency, self.hops = adjacency, hops
        self.first, self.last = nn.Linear(*widths), nn.Linear(widths[1], 10)

    def _apply(self, move):
        self.adjacency = move(self.adjacency)  # no buffer: its table of measurements was made without
        return super()._apply(move)

    def forward(self, x):
        x = functional.leaky_relu(self.first(x))
        for _ in range(self.hops):
            x = 0.9 * torch.sparse.mm(self.adjacency, x) + 0.1 * x
        return self.last(x)


def propagation(draw):
    """Sparse matrix products spread what nodes know."""
    nodes = draw.choice([200, 500, 1000, 2000])
    edges = _edges(draw, nodes)
    adjacency = torch.sparse_coo_tensor(edges, torch.rand(edges.shape[1]), (nodes, nodes)).coalesce()
    widths = draw.choice([16, 64, 128]), draw.choice([16, 32, 64])
    model = _Propagation(adjacency, widths, draw.randint(1, 6))
    return _on_graph(model, torch.randn(nodes, widths[0]))
