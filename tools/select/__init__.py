"""The declared rule over checkpoints."""

from tools.select.rule import RULE as RULE
from tools.select.rule import Judged as Judged
from tools.select.rule import Rule as Rule
from tools.select.rule import Selection as Selection
from tools.select.rule import select_checkpoint as select_checkpoint
from tools.select.stage import MOST_UPDATES as MOST_UPDATES
from tools.select.stage import Going as Going
from tools.select.stage import Point as Point
from tools.select.stage import Stage as Stage
from tools.select.stage import going_on as going_on
from tools.select.stage import is_boundary as is_boundary
