"""Training tasks of different graphs of operators: a function of a random.Random makes a Task."""

from . import convolutional, dense, lookups, sequences

ARCHITECTURES = {
    build.__name__: build
    for build in (
        dense.mlp,
        dense.autoencoder,
        dense.variational,
        dense.mixer,
        dense.highway,
        convolutional.lenet,
        convolutional.resnet,
        convolutional.mobilenet,
        convolutional.densenet,
        convolutional.inception,
        convolutional.squeeze_excite,
        convolutional.unet,
        sequences.lstm,
        sequences.gru,
        sequences.elman,
        sequences.tagger,
        sequences.translator,
        sequences.encoder,
        sequences.decoder,
        sequences.tcn,
        sequences.text_cnn,
        lookups.recommender,
        lookups.skip_gram,
        lookups.factorisation,
        lookups.bag_of_words,
        lookups.graph_convolution,
        lookups.propagation,
    )
}
