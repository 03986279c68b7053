"""What to sample, what to extend, what to train on, and whether there is anything to learn at all."""

from tools.mine.contrast import Chosen as Chosen
from tools.mine.contrast import Pool as Pool
from tools.mine.contrast import doubtful_references as doubtful_references
from tools.mine.contrast import select_contrast as select_contrast
from tools.mine.contrast import training_pool as training_pool
from tools.mine.doubt import Doubt as Doubt
from tools.mine.doubt import doubts as doubts
from tools.mine.headroom import headroom as headroom
from tools.mine.strata import Extension as Extension
from tools.mine.strata import MiningStats as MiningStats
from tools.mine.strata import merge_groups as merge_groups
from tools.mine.strata import mining_stats as mining_stats
from tools.mine.strata import strata_to_deepen as strata_to_deepen
from tools.mine.strata import strata_to_extend as strata_to_extend
from tools.mine.subset import Subset as Subset
from tools.mine.subset import by_keys as by_keys
from tools.mine.subset import pick_subset as pick_subset
from tools.mine.subset import useful_keys as useful_keys
from tools.mine.verdict import MiningVerdict as MiningVerdict
from tools.mine.verdict import Thresholds as Thresholds
from tools.mine.verdict import check_answers as check_answers
from tools.mine.verdict import verdict as verdict
