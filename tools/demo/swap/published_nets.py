"""The nets of the publication (AlexNet, VGG16, ResNet-50, Inception-v3) for pictures of 32x32 and ten classes.

What their authors made for pictures of 224 and 299 makes these too small too early. As is usual for CIFAR-10, the first
convolution has a stride of 1 (AlexNet: 2) and Inception-v3 one pool less before its mixed layers; what follows is theirs, but for
AlexNet's first linear layer, which has fewer inputs, and VGG16, which has normalisation and one linear layer.
"""

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10


def alexnet():
    """Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, 2012."""

    def unit(inputs, outputs, stride=1):
        return nn.Conv2d(inputs, outputs, 3, stride, 1), nn.ReLU(inplace=True)

    return nn.Sequential(
        *unit(3, 64, 2), nn.MaxPool2d(2),
        *unit(64, 192), nn.MaxPool2d(2),
        *unit(192, 384), *unit(384, 256), *unit(256, 256), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(), nn.Linear(256 * 2 * 2, 4096), nn.ReLU(inplace=True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
        nn.Linear(4096, CLASSES),
    )


def vgg16():
    """Simonyan and Zisserman, Very Deep Convolutional Networks, 2014, with normalisation and one linear layer."""
    layers, width = [], 3
    for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(width, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
            width = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, CLASSES))


class _Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )
        self.short = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x), inplace=True)


def resnet50():
    """He et al., Deep Residual Learning for Image Recognition, 2015."""
    blocks, inputs = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for at in range(count):
            blocks.append(_Bottleneck(inputs, width, stride if at == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES),
    )


def _unit(inputs, outputs, kernel=1, stride=1, padding=0):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False),
                         nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU(inplace=True))


class _Branches(nn.Module):
    """Of one input, side by side."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def _pooled(inputs, outputs):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _unit(inputs, outputs))


def _mixed5(inputs, pooled):
    return _Branches(
        _unit(inputs, 64),
        nn.Sequential(_unit(inputs, 48), _unit(48, 64, 5, 1, 2)),
        nn.Sequential(_unit(inputs, 64), _unit(64, 96, 3, 1, 1), _unit(96, 96, 3, 1, 1)),
        _pooled(inputs, pooled),
    )


def _mixed6(width):
    def long(a, b, across):
        return _unit(a, b, (1, 7), 1, (0, 3)) if across else _unit(a, b, (7, 1), 1, (3, 0))

    return _Branches(
        _unit(768, 192),
        nn.Sequential(_unit(768, width), long(width, width, True), long(width, 192, False)),
        nn.Sequential(_unit(768, width), long(width, width, False), long(width, width, True),
                      long(width, width, False), long(width, 192, True)),
        _pooled(768, 192),
    )


def _mixed7(inputs):
    def fork():
        return _Branches(_unit(384, 384, (1, 3), 1, (0, 1)), _unit(384, 384, (3, 1), 1, (1, 0)))

    return _Branches(
        _unit(inputs, 320),
        nn.Sequential(_unit(inputs, 384), fork()),
        nn.Sequential(_unit(inputs, 448), _unit(448, 384, 3, 1, 1), fork()),
        _pooled(inputs, 192),
    )


def inception_v3():
    """Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2015, without the auxiliary head."""
    return nn.Sequential(
        _unit(3, 32, 3, 1, 1), _unit(32, 32, 3, 1, 1), _unit(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2, 1),
        _unit(64, 80), _unit(80, 192, 3, 1, 1),
        _mixed5(192, 32), _mixed5(256, 64), _mixed5(288, 64),
        _Branches(
            _unit(288, 384, 3, 2, 1),
            nn.Sequential(_unit(288, 64), _unit(64, 96, 3, 1, 1), _unit(96, 96, 3, 2, 1)),
            nn.MaxPool2d(3, 2, 1),
        ),
        _mixed6(128), _mixed6(160), _mixed6(160), _mixed6(192),
        _Branches(
            nn.Sequential(_unit(768, 192), _unit(192, 320, 3, 2, 1)),
            nn.Sequential(_unit(768, 192), _unit(192, 192, (1, 7), 1, (0, 3)), _unit(192, 192, (7, 1), 1, (3, 0)),
                          _unit(192, 192, 3, 2, 1)),
            nn.MaxPool2d(3, 2, 1),
        ),
        _mixed7(1280), _mixed7(2048),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(2048, CLASSES),
    )


# In the order of the publication.
NETS = {"alexnet": alexnet, "vgg16": vgg16, "resnet50": resnet50, "inception_v3": inception_v3}
