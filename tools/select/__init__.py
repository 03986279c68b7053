"""The declared rule over checkpoints."""

from tools.select.rule import RULE as RULE
from tools.select.rule import Judged as Judged
from tools.select.rule import Rule as Rule
from tools.select.rule import Selection as Selection
from tools.select.rule import select_checkpoint as select_checkpoint
