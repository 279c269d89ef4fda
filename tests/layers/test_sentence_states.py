"""States of sentences, beside the words that they have."""

import torch

from heedful.layers.sentence_states import NUM_POSITIONS, POSITION_SIZE, SentenceStates

EOS = 3
IDS = torch.tensor([[5, 6, EOS, 7, EOS, 0], [4, EOS, EOS, 9, 8, 7]])
"""Two sentences and padding; and one, an empty one, and one without EOS."""
LENGTHS = torch.tensor([5, 6])


def make() -> tuple[SentenceStates, torch.Tensor]:
    torch.manual_seed(1)
    return SentenceStates(4).double(), torch.randn(2, 6, 4).double()


def test_words_of_a_sentence_have_its_state_and_padding_has_zeros():
    layer, states = make()
    result = layer(states, IDS, LENGTHS)
    assert result.shape == (2, 6, layer.output_size)
    for row, groups in enumerate((((0, 1, 2), (3, 4)), ((0, 1), (2,), (3, 4, 5)))):
        for group in groups:
            for position in group:
                assert torch.equal(result[row, position], result[row, group[0]])
        assert len({tuple(result[row, group[0]].tolist()) for group in groups}) == len(groups)
    assert not result[0, 5].any()


def test_the_state_is_that_of_the_encoder_over_means_and_the_vector_of_the_position():
    layer, states = make()
    means = torch.stack([states[0, :3].mean(dim=0), states[0, 3:5].mean(dim=0)])[None]
    wanted = layer.encoder(means, torch.tensor([2]))[0]
    result = layer(states, IDS, LENGTHS)[0]
    torch.testing.assert_close(result[[0, 3], :-POSITION_SIZE], wanted)
    torch.testing.assert_close(result[[0, 3], -POSITION_SIZE:], layer.positions[:2])


def test_padding_and_neighbours_change_nothing():
    layer, states = make()
    together = layer(states, IDS, LENGTHS)
    alone = layer(states[:1, :5], IDS[:1, :5], LENGTHS[:1])
    torch.testing.assert_close(together[0, :5], alone[0], rtol=0, atol=1e-12)
    padded = states.clone()
    padded[0, 5] = torch.nan
    torch.testing.assert_close(layer(padded, IDS, LENGTHS), together, rtol=0, atol=0)


def test_later_sentences_than_there_are_positions_have_the_last_one():
    layer, _ = make()
    number = NUM_POSITIONS + 3
    result = layer(torch.randn(1, number, 4).double(), torch.full((1, number), EOS), torch.tensor([number]))
    torch.testing.assert_close(result[0, -1, -POSITION_SIZE:], layer.positions[-1])
