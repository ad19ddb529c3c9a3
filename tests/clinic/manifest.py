"""The clinic: programs with one known disease each, their healed twins, and healthy programs.

A sick program carries two kinds of comments, which a tool never sees:

    # <- GSnnn    the guilty line: where the guilty expression starts, or, where the finding is
                  about a parameter or a layer, where that is defined
    # <~ GSnnn    a line that would be an equally right answer

`sick/NAME.py` and `cures/NAME.patch`, which heals it (see `healing.py`), belong together; a program
of several files is a folder `NAME/` with a `main.py`. Nothing here imports torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.clinic.healing import SICK, healed

FOLDER = Path(__file__).resolve().parent
Kind = Literal["sick", "healed"]


@dataclass(frozen=True)
class Case:
    """A disease: the program in `sick/` has it, the healed one does not."""

    name: str
    rule: str  # its code; GS000 where the doctor does not see it
    op: str  # node without Backward0, class of a custom Function, or the python call at fault
    note: str
    source: str  # the report that inspired it, or nothing
    also: tuple[str, ...] = ()  # findings that may come with it, as a consequence
    file: str = ""  # the file name that python knows, where it is not that of the marked file
    line: int = 0  # the line in it

    @property
    def _place(self) -> Path:
        single = SICK / f"{self.name}.py"
        return single if single.exists() else SICK / self.name

    def program(self, kind: Kind) -> Path:
        """The script to run."""
        place = self._place if kind == "sick" else healed(self._place)
        return place if place.suffix else place / "main.py"

    @property
    def files(self) -> list[Path]:
        """All files of the sick program."""
        return sorted(self._place.glob("*.py")) or [self._place]


@dataclass(frozen=True)
class Healthy:
    """A program in which nothing is wrong; `information` lists rules that may be mentioned."""

    name: str
    note: str
    information: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        """The script to run."""
        single = FOLDER / "healthy" / f"{self.name}.py"
        return single if single.exists() else FOLDER / "healthy" / self.name / "main.py"


CASES: tuple[Case, ...] = (
    Case(
        "log_of_softmax",
        "GS101",
        "Log",
        "softmax underflows to 0 and log makes -inf",
        "https://github.com/pytorch/pytorch/issues/1620",
    ),
    Case(
        "masked_mean_empty",
        "GS101",
        "Div",
        "mean over a mask that is empty for one row: 0/0",
        "",
    ),
    Case(
        "no_hard_examples",
        "GS101",
        "Mean",
        "mean over a selection that is empty: 0/0, not too large a number",
        "",
    ),
    Case(
        "negative_variance",
        "GS101",
        "Sqrt",
        "E[x²] - E[x]² rounds below zero before the root",
        "https://github.com/digantamisra98/EvoNorm/pull/5",
    ),
    Case(
        "fully_masked_attention",
        "GS101",
        "Softmax",
        "a row whose every key is masked: softmax over only -inf",
        "https://github.com/bentrevett/pytorch-seq2seq/issues/191",
    ),
    Case(
        "softplus_by_hand",
        "GS101",
        "Exp",
        "log(1 + exp(x)) overflows in exp, inside a lambda",
        "",
    ),
    Case(
        "notebook_cells",
        "GS101",
        "Log",
        "the guilty line is in a cell run by exec, under the file name <cell 2>",
        "",
        file="<cell 2>",
        line=4,
    ),
    Case(
        "pairwise_distance",
        "GS102",
        "Sqrt",
        "root of an exact zero on the diagonal of a distance matrix",
        "https://github.com/open-mmlab/mmrotate/issues/205",
    ),
    Case(
        "where_log",
        "GS102",
        "Log",
        "the branch that where does not take still gets 0/0 in backward",
        "https://github.com/pytorch/pytorch/issues/108618",
    ),
    Case(
        "where_exp_elu",
        "GS102",
        "Exp",
        "hand-written ELU: exp overflows in the branch not taken, 0·inf in backward",
        "https://github.com/pytorch/pytorch/issues/68425",
    ),
    Case(
        "group_lasso",
        "GS102",
        "Pow",
        "(sum of squares) ** 0.5 at a row of zeros",
        "https://github.com/pytorch/pytorch/issues/2421",
    ),
    Case(
        "geodesic_loss",
        "GS102",
        "Acos",
        "acos at exactly 1 has an infinite slope; clamp to [-1, 1] lets it through",
        "https://github.com/pytorch/pytorch/issues/8069",
    ),
    Case(
        "repeated_eigenvalues",
        "GS102",
        "LinalgEigh",
        "eigenvectors of a matrix with equal eigenvalues: 1/(λi - λj)",
        "",
    ),
    Case(
        "rms_norm_half",
        "GS103",
        "Pow",
        "squares above 65504 in float16",
        "https://github.com/pytorch/pytorch/issues/40497",
    ),
    Case(
        "attention_scores_half",
        "GS103",
        "Bmm",
        "q·k overflows float16 under autocast, before the scaling",
        "https://github.com/NVIDIA/apex/issues/93",
    ),
    Case(
        "tiny_loss_half",
        "GS104",
        "Mean",
        "gradients below 6e-8 flush to zero in float16",
        "https://github.com/engichang1467/Open-Rig3R/issues/35",
    ),
    Case(
        "weighted_loss_half",
        "GS104",
        "Mul",
        "most gradients are subnormal and not zero yet",
        "",
    ),
    Case(
        "missing_reading",
        "GS105",
        "",
        "the table holds a nan: no operation of the program made it",
        "",
    ),
    Case(
        "sensor_gaps",
        "GS105",
        "rnn",
        "NaN in the data of a recurrent layer, a call of many nodes",
        "",
    ),
    Case(
        "marker_offsets",
        "GS503",
        "Sub",
        "(n, 3, 1, 1) of a convolution against (n, 3)",
        "",
    ),
    Case(
        "half_cosine",
        "GS101",
        "Div",
        "float16: the eps under which a length is clamped is 0 there, and padded rows are 0/0",
        "",
    ),
    Case(
        "prompt_in_half",
        "GS106",
        "RMSprop",
        "float16 parameters: the optimizer's eps is 0 there, and so are the squares of gradients",
        "",
    ),
    Case(
        "deep_sigmoid",
        "GS201",
        "Sigmoid",
        "twenty sigmoid layers, each shrinks the gradient",
        "",
    ),
    Case(
        "long_memory_rnn",
        "GS201",
        "Addmm",
        "a contracting recurrence over 60 steps forgets its first input",
        "",
    ),
    Case(
        "unscaled_init",
        "GS202",
        "Addmm",
        "standard normal weights multiply the gradient layer by layer",
        "",
    ),
    Case(
        "unstable_recurrence",
        "GS202",
        "Mm",
        "a linear recurrence with spectral radius above one, 40 steps",
        "",
    ),
    Case(
        "raw_pixels_sigmoid",
        "GS203",
        "Sigmoid",
        "inputs of 0 to 255 push every sigmoid to its flat ends",
        "https://github.com/PeterL1n/BackgroundMattingV2/issues/128",
    ),
    Case(
        "stuck_gate",
        "GS203",
        "Sigmoid",
        "one saturated element, on which the learning of one leaf depends",
        "",
    ),
    Case(
        "unscaled_attention",
        "GS203",
        "Softmax",
        "scores with a spread of hundreds make the attention one-hot",
        "",
    ),
    Case(
        "dead_relu",
        "GS204",
        "Relu",
        "a large negative bias: no unit of the layer ever fires",
        "https://github.com/pytorch/benchmark/pull/1927",
    ),
    Case(
        "rounded_weights",
        "GS205",
        "Round",
        "round has derivative zero everywhere",
        "https://github.com/dropbox/hqq/issues/84",
    ),
    Case(
        "clamped_output",
        "GS205",
        "Clamp",
        "all predictions lie outside the clamp",
        "https://github.com/pytorch/pytorch/issues/7002",
    ),
    Case(
        "norm_of_one",
        "GS205",
        "NativeLayerNorm",
        "a LayerNorm over one number: zero up to rounding",
        "",
    ),
    Case(
        "unit_length_of_one",
        "GS205",
        "Div",
        "a number by its own length: two gradients that cancel",
        "",
    ),
    Case(
        "unit_prototypes",
        "GS206",
        "Div",
        "normalize of rows of zeros multiplies the gradient by 1e12",
        "",
    ),
    Case(
        "currents_in_ampere",
        "GS206",
        "Mul",
        "the result is multiplied by 1e-9, and no gradient is larger than that",
        "",
    ),
    Case(
        "both_adapters_zero",
        "GS205",
        "Mm",
        "a product of two factors that both start at zero",
        "https://github.com/lucidrains/deep-cross-attention/issues/2",
    ),
    Case(
        "binary_codes",
        "GS205",
        "Sign",
        "sign has derivative zero; hidden behind a decorator",
        "https://github.com/PeterL1n/BackgroundMattingV2/issues/128",
    ),
    Case(
        "atanh_of_saturated",
        "GS105",
        "log1p",
        "actions at the border of the box: the inverse of tanh is infinite, outside the graph",
        "https://github.com/denisyarats/pytorch_sac/issues/7",
    ),
    Case(
        "dpp_logdet",
        "GS101",
        "LinalgSlogdet",
        "logdet of a kernel with an all-zero item, deep inside a composite call",
        "https://github.com/google-deepmind/ferminet/issues/5",
    ),
    Case(
        "masked_entropy",
        "GS101",
        "Mul",
        "-inf was meant as a mask, but the entropy multiplies it by 0",
        "https://github.com/thu-ml/tianshou/issues/742",
    ),
    Case(
        "ctc_short_input",
        "GS101",
        "CtcLoss",
        "a target longer than the input has no alignment",
        "https://github.com/FangShancheng/ABINet/issues/65",
    ),
    Case(
        "two_tails_all_ignored",
        "GS101",
        "NllLoss",
        "the third batch has no target for one of two heads: a mean over nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
    ),
    Case(
        "single_variant_variance",
        "GS101",
        "Var",
        "the unbiased variance of a single element is 0/0; the loss comes from a registry",
        "https://github.com/EleutherAI/elk/pull/120",
    ),
    Case(
        "sinkhorn_small_eps",
        "GS101",
        "Div",
        "a kernel of exp(-cost / 0.01) underflows, and its row sums are divided by",
        "https://github.com/PythonOT/POT/issues/54",
    ),
    Case(
        "masked_video_loss",
        "GS101",
        "Div",
        "the second batch holds a clip with an empty mask",
        "https://github.com/Zhen-Dong/Magic-Me/issues/14",
    ),
    Case(
        "stft_power_one",
        "GS102",
        "Sqrt",
        "the root of the power of exact silence",
        "https://github.com/pytorch/audio/issues/993",
    ),
    Case(
        "ratio_then_masked",
        "GS102",
        "Div",
        "0/0 is overwritten in the result, but backward still goes through it",
        "https://github.com/pytorch/pytorch/issues/4132",
    ),
    Case(
        "bucketed_attention",
        "GS101",
        "Softmax",
        "a padded query sees no key; its NaN is left out of the loss, not of backward",
        "https://github.com/pytorch/pytorch/issues/41508",
    ),
    Case(
        "focal_half_gamma",
        "GS102",
        "Pow",
        "(1 - p) ** 0.5 at p = 1",
        "https://github.com/kornia/kornia/issues/918",
    ),
    Case(
        "log_semiring_forward",
        "GS102",
        "Logsumexp",
        "logsumexp over nothing but -inf has NaN gradients",
        "https://github.com/pytorch/pytorch/issues/31829",
    ),
    Case(
        "distance_transform_log",
        "GS102",
        "Log",
        "nan_to_num mends the result of log, not its gradient",
        "https://github.com/kornia/kornia/issues/4183",
    ),
    Case(
        "svd_low_rank",
        "GS102",
        "LinalgSvd",
        "singular vectors of a matrix of rank 3: many singular values are 0",
        "https://github.com/pytorch/pytorch/issues/49886",
    ),
    Case(
        "linear_recurrence",
        "GS202",
        "Addmm",
        "a recurrence without activation and with large weights",
        "https://taourl.com/read-1885623.html",
    ),
    Case(
        "unrolled_cascades",
        "GS202",
        "Convolution",
        "twelve cascades without any normalisation",
        "https://github.com/hellopipu/PromptMR-plus/issues/7",
    ),
    Case(
        "gnn_sum_aggregation",
        "GS202",
        "Mm",
        "each layer sums over about 100 neighbours",
        "https://github.com/cvignac/SMP/issues/3",
    ),
    Case(
        "softmax_before_ce",
        "GS512",
        "Softmax",
        "a softmax in front of cross_entropy, saturated after a few steps",
        "https://github.com/bowang-lab/Transformer-GCN-QA/pull/32",
    ),
    Case(
        "lr_saturates_topics",
        "GS203",
        "Softmax",
        "after one step of a huge learning rate the softmax is one-hot; only later steps show it",
        "https://github.com/dangitstam/topic-rnn/pull/9",
    ),
    Case(
        "cold_matching",
        "GS203",
        "Softmax",
        "a temperature of 0.001 in the middle of the model",
        "https://github.com/Thinklab-SJTU/pygmtools/issues/64",
    ),
    Case(
        "nearest_warp",
        "GS205",
        "GridSampler",
        "nearest neighbour sampling passes no gradient to the grid",
        "https://github.com/kornia/kornia/issues/827",
    ),
    Case(
        "triplet_from_zero",
        "GS205",
        "Pow",
        "a last layer of zeros under a squared distance: all embeddings are equal, and stay so",
        "https://github.com/facebookarchive/fb.resnet.torch/issues/4",
    ),
    Case(
        "relu_on_output",
        "GS205",
        "Relu",
        "a ReLU at the output of a single channel is inactive everywhere",
        "https://github.com/jvargasmu/population_estimation/issues/68",
    ),
    Case(
        "zero_gate",
        "GS205",
        "Mm",
        "two layers of zeros in a row in a gate",
        "https://github.com/yz93/LAVT-RIS/issues/25",
    ),
    Case(
        "learned_bit_width",
        "GS205",
        "Ceil",
        "the bit width is learned through ceil",
        "https://github.com/Xilinx/brevitas/pull/203",
    ),
    Case(
        "isrlu_activation",
        "GS601",
        "ISRLU",
        "backward forgets the gradient that comes from above",
        "https://github.com/pytorch/pytorch/issues/4355",
    ),
    Case(
        "clip_squares_gradient",
        "GS601",
        "Clip",
        "backward applies the gradient twice; inside the bounds forward is the identity",
        "https://github.com/elixir-nx/nx/pull/1779",
    ),
    Case(
        "forgotten_norm",
        "GS301",
        "",
        "a layer is defined and never called",
        "https://github.com/layumi/Person_reID_baseline_pytorch/issues/90",
    ),
    Case(
        "adam_of_the_backup",
        "GS301",
        "a copy",
        "the optimizer holds the parameters of a copy",
        "",
    ),
    Case(
        "same_layer_twice",
        "GS301",
        "",
        "copy and paste: conv2 is called for both, conv3 never",
        "https://github.com/pytorch/pytorch/issues/57776",
    ),
    Case(
        "gate_saved_never_used",
        "GS301",
        "",
        "a gate is averaged, saved and cast with all other parameters, and forward leaves it out",
        "",
    ),
    Case(
        "auxiliary_head_ignored",
        "GS302",
        "",
        'the dict holds "aux", the loss reads only "main"',
        "https://github.com/pytorch/pytorch/issues/57776",
    ),
    Case(
        "overwritten_in_loop",
        "GS302",
        "",
        "every block reads x, so only the last one counts",
        "https://github.com/pytorch/pytorch/issues/73697",
    ),
    Case(
        "metric_as_loss",
        "GS303",
        "detach",
        "a metric that detaches its inputs is used as the loss",
        "https://github.com/Project-MONAI/MONAI/pull/5686",
    ),
    Case(
        "normalised_by_data",
        "GS303",
        "data",
        ".data drops the history of the encoder",
        "https://github.com/pytorch/pytorch/issues/6990",
    ),
    Case(
        "sum_of_items",
        "GS303",
        "item",
        ".item() in the sum, then requires_grad on the result to silence the error",
        "https://github.com/replicate/cog/issues/1681",
    ),
    Case(
        "numpy_percentile",
        "GS303",
        "numpy",
        "the reconstruction term goes through numpy",
        "https://github.com/HuXiaoling/TopoLoss/issues/8",
    ),
    Case(
        "rewrapped_outputs",
        "GS303",
        "tensor",
        "torch.tensor of a list of outputs makes a new leaf",
        "https://github.com/pytorch/pytorch/issues/91529",
    ),
    Case(
        "hard_prediction_loss",
        "GS303",
        "argmax",
        "the loss compares class numbers, which argmax made",
        "https://github.com/pytorch/pytorch/issues/1339",
        also=("GS409",),
    ),
    Case(
        "thresholded_mask",
        "GS303",
        "gt",
        "a comparison makes the mask, so the gate gets no gradient",
        "https://github.com/Ugenteraan/Deep_Hierarchical_Classification/issues/6",
    ),
    Case(
        "float_temperature",
        "GS303",
        "float",
        "float() of a learnable scalar",
        "https://github.com/seanie12/CLAPS/issues/3",
    ),
    Case(
        "formula_file",
        "GS303",
        "item",
        "the guilty line is in a file run by exec under its own path",
        "https://github.com/pytorch/pytorch/issues/91529",
    ),
    Case(
        "no_grad_encoder",
        "GS304",
        "no_grad",
        "the helper made for evaluation is used in training",
        "https://github.com/nianticlabs/monodepth2/issues/24",
    ),
    Case(
        "inference_mode_features",
        "GS304",
        "inference_mode",
        "features cached under inference_mode enter the training graph",
        "https://github.com/snowflakedb/ArcticTraining/pull/265",
    ),
    Case(
        "speaker_embedding_frozen_by_decorator",
        "GS304",
        "no_grad",
        "embed is decorated with torch.no_grad for serving, and the whole encoder runs in it",
        "",
    ),
    Case(
        "evaluation_switches_off",
        "GS304",
        "set_grad_enabled",
        "set_grad_enabled(False) in the evaluation is never undone",
        "https://github.com/turboderp/exllama/issues/17",
        also=("GS409",),
    ),
    Case(
        "frozen_by_helper",
        "GS305",
        "",
        "requires_grad was switched off for a layer the optimizer was given",
        "https://github.com/victorchall/EveryDream2trainer/issues/172",
    ),
    Case(
        "unfrozen_without_optimizer",
        "GS307",
        "requires_grad was switched on later",
        "the encoder is unfrozen later, and not in the optimizer",
        "",
    ),
    Case(
        "generator_twice",
        "GS307",
        "two optimizers hold the same",
        "both optimizers were given the generator",
        "",
        also=("GS310",),
    ),
    Case(
        "centers_not_learned",
        "GS307",
        "centers",
        "the loss has parameters of its own",
        "",
    ),
    Case(
        "projection_in_forward",
        "GS312",
        "nn.Linear",
        "forward makes the last layer, which is random each time",
        "",
    ),
    Case(
        "rounded_away",
        "GS313",
        "bfloat16",
        "weights in bfloat16 and a learning rate that they cannot tell",
        "",
    ),
    Case(
        "sigmoid_before_logits",
        "GS512",
        "sigmoid",
        "probabilities are given to a loss that takes logits",
        "",
    ),
    Case(
        "memory_of_last_batch",
        "GS402",
        "carried over by self.memory",
        "a memory is written in forward and read in the next",
        "",
    ),
    Case(
        "state_returned_to_loop",
        "GS402",
        "carried over by hidden",
        "the state that forward returns goes into the next window",
        "",
    ),
    Case(
        "scaled_weight",
        "GS306",
        "",
        "arithmetic after requires_grad: the variable is not the leaf",
        "https://github.com/hhsecond/HandsOnDeepLearningWithPytorch/issues/2",
    ),
    Case(
        "adversarial_image",
        "GS306",
        "",
        ".to() makes a new tensor, whose .grad stays None",
        "https://github.com/pytorch/pytorch/issues/13113",
    ),
    Case(
        "list_of_layers",
        "GS307",
        "",
        "layers in a plain list: unknown to parameters() and to the optimizer",
        "https://github.com/pytorch/pytorch/issues/59925",
    ),
    Case(
        "replaced_head",
        "GS307",
        "",
        "the layer is replaced after the optimizer was made",
        "https://github.com/microsoft/nni/issues/4521",
    ),
    Case(
        "decoder_left_out",
        "GS307",
        "",
        "the optimizer is given one half of the model",
        "https://github.com/zjunlp/HVPNeT/issues/5",
    ),
    Case(
        "data_edit_after_sigmoid",
        "GS308",
        "Sigmoid",
        ".data edits a saved result without the version counter noticing",
        "https://github.com/pytorch/pytorch/issues/6990",
    ),
    Case(
        "weights_clipped_too_early",
        "GS308",
        "Mm",
        "weights are clamped through .data between forward and backward",
        "https://github.com/pytorch/pytorch/issues/197054",
    ),
    Case(
        "checkpoint_first_block",
        "GS309",
        "checkpoint",
        "reentrant checkpoint on raw input: no gradient for the block",
        "https://github.com/mlfoundations/open_clip/issues/573",
    ),
    Case(
        "prompt_cleared_before_backward",
        "GS309",
        "checkpoint",
        "the prompts are switched off before a reentrant checkpoint computes its layer again",
        "",
    ),
    Case(
        "skip_added_in_place",
        "GS401",
        "Tanh",
        "+= on a tensor whose value tanh saved",
        "https://github.com/Seanny123/da-rnn/issues/14",
    ),
    Case(
        "gan_step_too_early",
        "GS401",
        "Addmm",
        "optimizer.step changes weights that the second backward still needs",
        "https://github.com/pytorch/pytorch/issues/39141",
    ),
    Case(
        "states_written_by_index",
        "GS401",
        "Mm",
        "a buffer is filled by index while its earlier slices are saved",
        "https://github.com/pytorch/pytorch/issues/96265",
    ),
    Case(
        "inplace_activation",
        "GS401",
        "Exp",
        "nn.Hardtanh(inplace=True) overwrites what exp saved",
        "https://github.com/quark0/darts/issues/109",
    ),
    Case(
        "gain_after_relu",
        "GS401",
        "Relu",
        "in place after in place: the second change is to blame, not the first",
        "",
    ),
    Case(
        "hidden_state_carried",
        "GS402",
        "",
        "the hidden state keeps the graph of the step before",
        "https://github.com/MorvanZhou/PyTorch-Tutorial/issues/57",
    ),
    Case(
        "forward_outside_loop",
        "GS402",
        "",
        "a part of the forward is computed once, before the loop",
        "https://github.com/karpathy/nn-zero-to-hero/issues/31",
    ),
    Case(
        "two_losses_one_trunk",
        "GS402",
        "",
        "two backward calls share a trunk",
        "https://github.com/1ytic/warp-rnnt/issues/12",
    ),
    Case(
        "loss_per_sample",
        "GS403",
        "",
        'reduction="none" leaves a loss per sample',
        "https://github.com/sh0416/bpr/issues/13",
    ),
    Case(
        "gradient_of_wrong_shape",
        "GS404",
        "",
        "the gradient handed to backward is [n], the output [n, 1]",
        "https://github.com/eriklindernoren/PyTorch-YOLOv3/issues/331",
    ),
    Case(
        "padding_row_zeroed",
        "GS405",
        "",
        "index assignment on a parameter",
        "https://github.com/Atcold/NYU-DLSP20/issues/765",
    ),
    Case(
        "chunk_edited",
        "GS405",
        "Split",
        "in-place on one of the views that chunk returns",
        "https://github.com/pytorch/pytorch/issues/36403",
    ),
    Case(
        "one_gradient_short",
        "GS406",
        "ScaleBy",
        "backward returns one gradient for two inputs",
        "https://github.com/huawei-noah/AdderNet/issues/21",
    ),
    Case(
        "gradient_not_reduced",
        "GS406",
        "AddRow",
        "the gradient of a vector is returned with the batch still on it",
        "https://github.com/balbasty/nitorch/issues/29",
    ),
    Case(
        "none_for_weight",
        "GS406",
        "FastLinear",
        "backward returns None for an input that needs a gradient",
        "",
    ),
    Case(
        "penalty_on_once_differentiable",
        "GS407",
        "SmoothRelu",
        "a gradient penalty through a once_differentiable function",
        "https://github.com/asappresearch/sru/issues/43",
    ),
    Case(
        "penalty_through_attention",
        "GS407",
        "ScaledDotProductFlashAttentionForCpu",
        "the fused attention kernel has no second derivative",
        "https://github.com/pytorch/pytorch/issues/18945",
    ),
    Case(
        "hook_returns_norm",
        "GS408",
        "",
        "a logging lambda returns the norm, which replaces the gradient",
        "https://github.com/jordan-g/PyTorch-Feedback-Alignment-Layers/issues/1",
    ),
    Case(
        "module_hook_bare_tensor",
        "GS408",
        "",
        "a module hook must return a tuple, a bare tensor is read as a tuple",
        "https://github.com/TransformerLensOrg/TransformerLens/issues/1160",
    ),
    Case(
        "nothing_requires_grad",
        "GS409",
        "",
        "the weights were created without requires_grad",
        "https://github.com/pytorch/pytorch/issues/91529",
    ),
    Case(
        "hook_of_new_layer",
        "GS410",
        "update",
        "a logging hook raises KeyError in the ninth step, when a layer is switched on",
        "",
    ),
    Case(
        "dropped_mask_in_backward",
        "GS410",
        "WordDropout",
        "backward uses an attribute of ctx that forward sets in one of its branches",
        "",
    ),
    Case(
        "matching_own_features",
        "GS316",
        "smooth_l1_loss",
        "the small net's hints are overwritten by those of the frozen net",
        "",
    ),
    Case(
        "no_zero_grad",
        "GS501",
        "",
        "zero_grad is never called",
        "https://github.com/yastrebksv/TennisCourtDetector/issues/7",
    ),
    Case(
        "manual_descent_not_zeroed",
        "GS501",
        "",
        "hand-written gradient descent that keeps the old gradients",
        "https://github.com/pytorch/pytorch/issues/47175",
    ),
    Case(
        "zero_grad_in_one_branch",
        "GS501",
        "",
        "the mixed-precision branch has no zero_grad",
        "https://github.com/facebookresearch/nwm/issues/16",
    ),
    Case(
        "decay_curve_fit",
        "GS501",
        "",
        "zero_grad outside of the function that LBFGS calls again and again",
        "",
    ),
    Case(
        "running_loss_tensor",
        "GS502",
        "",
        "the running loss is a tensor with history",
        "https://github.com/BatsResearch/labelmodels/issues/4",
    ),
    Case(
        "retained_hidden_state",
        "GS502",
        "",
        "retain_graph=True as a cure for the freed graph: history grows with every step",
        "https://github.com/sgadgil6/cnslab_fmri/issues/4",
    ),
    Case(
        "moving_average_loss",
        "GS502",
        "",
        "an exponential average of the loss, kept with its history",
        "https://github.com/MultimediaTechLab/YOLO/pull/83",
    ),
    Case(
        "column_against_row",
        "GS503",
        "Sub",
        "[n, 1] minus [n] is [n, n]",
        "https://github.com/pytorch/pytorch/issues/16413",
    ),
    Case(
        "mse_loss_shapes",
        "GS503",
        "MseLoss",
        "nn.MSELoss broadcasts [n, 1] against [n]",
        "https://github.com/pytorch/pytorch/issues/16045",
    ),
    Case(
        "advantage_broadcast",
        "GS503",
        "Mul",
        "log_prob [n] times advantage [n, 1]",
        "https://github.com/sunwuzhou03/reinforcement-learning-lab/issues/1",
    ),
    Case(
        "clipped_to_nothing",
        "GS504",
        "clip_grad_norm_",
        "clipping at 1e-4 decides the size of every step",
        "",
    ),
    Case(
        "reversed_by_hook",
        "GS504",
        "register_hook",
        "a hook left from an experiment reverses the gradient of the encoder",
        "",
    ),
    Case(
        "silenced_encoder",
        "GS504",
        "makes the gradient zero",
        "a hook left from an ablation multiplies the gradient of the encoder by zero",
        "",
    ),
    Case(
        "swish_without_product_rule",
        "GS601",
        "Swish",
        "the derivative lacks a term of the product rule",
        "https://github.com/CharlesShang/DCNv2/issues/13",
    ),
    Case(
        "upstream_ignored",
        "GS601",
        "LogCosh",
        "backward does not multiply by the incoming gradient",
        "https://github.com/KeKsBoTer/torch-dwt/issues/2",
    ),
    Case(
        "matmul_transposed_wrong",
        "GS601",
        "MatMul",
        "square matrices hide a missing transpose",
        "https://github.com/chengdazhi/Deformable-Convolution-V2-PyTorch/issues/20",
    ),
    Case(
        "wide_gelu_factor",
        "GS601",
        "FusedGelu",
        "a wrong constant in the derivative, over 65,536 elements",
        "",
    ),
    Case(
        "penalty_through_kept_slope",
        "GS601",
        "SoftSign",
        "double backward takes what was kept on ctx for a constant",
        "",
    ),
    Case(
        "equilibrium_half_solved",
        "GS601",
        "Equilibrium",
        "a Function with a graph of its own solves its linear system by one step",
        "",
    ),
    Case(
        "empty_crop_late",
        "GS101",
        "Div",
        "0/0 in the eleventh step, where a crop has no foreground",
        "",
    ),
    Case(
        "balance_loss_list",
        "GS303",
        "torch.tensor",
        "torch.tensor makes a number of the balance term of the loss",
        "https://github.com/laekov/fastmoe/issues/49",
    ),
    Case(
        "a2c_log_probs",
        "GS303",
        "torch.tensor",
        "log probabilities re-wrapped in torch.tensor",
        "https://github.com/Quantum-Cheese/DeepReinforcementLearning_Pytorch/issues/1",
    ),
    Case(
        "cic_encoder",
        "GS304",
        "no_grad",
        "observations encoded under no_grad, one method away",
        "https://github.com/rll-research/cic/issues/5",
    ),
    Case(
        "gflownet_logits",
        "GS303",
        "detach",
        "a clone that is detached; no_grad around sampling is innocent",
        "https://github.com/alexhernandezgarcia/gflownet/pull/251",
    ),
    Case(
        "forces_without_graph",
        "GS303",
        "grad",
        "autograd.grad without create_graph, then a loss on its result",
        "https://github.com/aiqm/torchani/pull/238",
    ),
    Case(
        "exhausted_generator",
        "GS307",
        "down",
        "a filter() that a print has used up goes to the optimizer",
        "https://github.com/PixArt-alpha/PixArt-alpha/pull/160",
    ),
    Case(
        "relative_in_forward",
        "GS312",
        "Parameter",
        "a Parameter made anew in each forward",
        "https://github.com/leaderj1001/Stand-Alone-Self-Attention/issues/2",
    ),
    Case(
        "peephole_variables",
        "GS307",
        "Wc",
        "leaves that are attributes, and no Parameters",
        "https://github.com/automan000/Convolutional_LSTM_PyTorch/issues/17",
    ),
    Case(
        "parameter_cast_in_init",
        "GS307",
        "wh",
        "a Parameter cast in a helper: what is kept is no Parameter",
        "https://github.com/pytorch/pytorch/issues/127760",
    ),
    Case(
        "attention_border",
        "GS401",
        "Relu",
        "the border of a ReLU map zeroed by index, four times",
        "https://github.com/AggMan96/RK-Net/issues/9",
    ),
    Case(
        "xception_block",
        "GS401",
        "Convolution",
        "the first in-place ReLU of a block changes its input, which the shortcut saved",
        "https://github.com/osmr/imgclsmob/issues/13",
    ),
    Case(
        "sac_order",
        "GS401",
        "step",
        "policy loss computed before the critics step",
        "https://github.com/toshikwa/soft-actor-critic.pytorch/issues/1",
    ),
    Case(
        "batchnorm_two_modes",
        "GS308",
        "BatchNorm",
        "running statistics change between a forward in eval mode and backward",
        "https://github.com/NVlabs/FUNIT/issues/53",
    ),
    Case(
        "normalise_channels",
        "GS405",
        "Unbind",
        "channels changed in place while iterating over an image",
        "https://github.com/paarthneekhara/AdversarialDeepFakes/issues/23",
    ),
    Case(
        "quantised_linear",
        "GS406",
        "linear",
        "backward forgets to give the batch dimensions back",
        "https://github.com/ucbrise/actnn/issues/26",
    ),
    Case(
        "cdist_gradient_matching",
        "GS407",
        "cdist",
        "cdist has no second derivative in its default mode",
        "https://github.com/pytorch/pytorch/issues/83510",
    ),
    Case(
        "maml_unused_pooler",
        "GS301",
        "pooler",
        "autograd.grad by a parameter that forward does not use",
        "https://github.com/learnables/learn2learn/issues/363",
    ),
    Case(
        "master_loss_per_word",
        "GS403",
        "Unsqueeze",
        "a loss per word, unsqueezed",
        "https://github.com/mindee/doctr/pull/379",
    ),
    Case(
        "compressive_memory",
        "GS402",
        "",
        "memory carried from segment to segment with its history",
        "https://github.com/jlamprou/Infini-Attention/issues/3",
    ),
    Case(
        "outputs_kept_in_list",
        "GS502",
        "append",
        "the losses of an epoch kept in a list of dicts",
        "https://github.com/TRI-ML/packnet-sfm/pull/51",
    ),
    Case(
        "metric_average",
        "GS502",
        "sum",
        "a metric object sums losses with their history",
        "https://github.com/horovod/horovod/pull/641",
    ),
    Case(
        "regression_head",
        "GS503",
        "Mse",
        "squeezed logits against labels of [n, 1]",
        "https://github.com/deepset-ai/FARM/issues/229",
    ),
    Case(
        "depth_without_channel",
        "GS503",
        "SmoothL1",
        "[n, 1, h, w] against [n, h, w]",
        "https://github.com/jiwei0921/CoNet/issues/3",
    ),
    Case(
        "step_forgotten",
        "GS505",
        "step",
        "backward, scheduler, zero_grad, and no step",
        "https://github.com/tedlasai/learn2refocus/issues/5",
    ),
    Case(
        "zeroed_before_step",
        "GS505",
        "zero_grad",
        "zero_grad between backward and step",
        "https://github.com/sacmehta/EdgeNets/issues/14",
    ),
    Case(
        "clipped_before_backward",
        "GS506",
        "clip_grad_norm_",
        "gradients are clipped before backward has brought them",
        "",
    ),
    Case(
        "clipped_while_scaled",
        "GS507",
        "clip_grad_norm_",
        "a GradScaler has not yet divided the gradients that are clipped",
        "",
    ),
    Case(
        "step_before_backward",
        "GS508",
        "step",
        "the step comes between the forward pass and its backward",
        "",
    ),
    Case(
        "backward_forgotten",
        "GS509",
        "backward",
        "the loss is computed and printed, and backward never called",
        "",
    ),
    Case(
        "adapters_added_later",
        "GS307",
        "",
        "adapters are put into the model when its optimizer is made already",
        "",
    ),
    Case(
        "bottleneck_left_out",
        "GS307",
        "",
        "groups for the encoder and the decoder, and none for the layer between",
        "",
    ),
    Case(
        "hint_projection",
        "GS307",
        "",
        "the loss projects the student's features, and its projection is not learned",
        "",
    ),
    Case(
        "replay_windows",
        "GS505",
        "zero_grad",
        "zero_grad before every small batch, and a step after every fourth",
        "",
    ),
    Case(
        "shared_trunk_zeroed",
        "GS505",
        "zero_grad",
        "the second optimizer zeroes the trunk that the first has still to step",
        "",
    ),
    Case(
        "aux_head_dropped",
        "GS302",
        "fc",
        "the auxiliary loss is returned and thrown away",
        "https://github.com/open-mmlab/mmaction2/issues/682",
    ),
    Case(
        "latent_loss_inert",
        "GS316",
        "detach",
        "a term of the loss computed from a detached picture",
        "https://github.com/samet-akcay/skip-ganomaly/issues/5",
    ),
    Case(
        "evolving_weight",
        "GS303",
        "Parameter",
        "nn.Parameter(evolved) in forward",
        "https://github.com/benedekrozemberczki/pytorch_geometric_temporal/issues/80",
    ),
    Case(
        "saliency_fixed_embeddings",
        "GS303",
        "detach",
        "embeddings detached by an option, then asked for a gradient",
        "https://github.com/pytorch/pytorch/issues/17124",
    ),
    Case(
        "slice_after_energy",
        "GS306",
        "Slice",
        "the gradient by a slice made after the result",
        "https://github.com/MaterSim/PyXtal_FF/issues/22",
    ),
    Case(
        "masked_tanh",
        "GS401",
        "Tanh",
        "*= on the result of tanh",
        "https://github.com/yunik1004/SAiD/issues/8",
    ),
    Case(
        "discriminator_not_zeroed",
        "GS501",
        "",
        "two optimizers, one never zeroed",
        "https://github.com/Hsintien-Ng/idinvert_pytorch-reproduced/issues/1",
    ),
    Case(
        "simulation_state",
        "GS502",
        "positions",
        "positions carried from step to step of a simulation",
        "https://github.com/TorchSim/torch-sim/pull/564",
    ),
    Case(
        "unfreeze_by_attribute",
        "GS305",
        "backbone",
        "module.requires_grad = True sets an attribute",
        "https://github.com/lxztju/pytorch_classification/issues/13",
    ),
    Case(
        "optimizer_of_wrong_model",
        "GS307",
        "decoder",
        "both optimizers made of the encoder",
        "https://github.com/lxztju/pytorch_classification/issues/13",
    ),
    Case(
        "singan_stale_fake",
        "GS401",
        "step",
        "one fake picture for several generator steps",
        "https://github.com/tamarott/SinGAN/issues/140",
    ),
    Case(
        "encoder_out_edited",
        "GS401",
        "setitem",
        "encoder states changed by index inside a dict",
        "https://github.com/facebookresearch/fairseq/issues/251",
    ),
    Case(
        "learned_learning_rate",
        "GS303",
        "data",
        "a learned rate applied through .data",
        "https://github.com/facebookresearch/higher/issues/32",
    ),
    Case(
        "recurrent_states_in_memory",
        "GS401",
        "step",
        "recurrent states stored with history, then a step",
        "https://github.com/Metta-AI/metta/pull/1139",
    ),
    Case(
        "episode_buffer_graphs",
        "GS502",
        "episodes",
        "a replay buffer keeps the graphs of its actions",
        "https://github.com/oxwhirl/pymarl/pull/73",
    ),
    Case(
        "refinement_never_trained",
        "GS303",
        "detach",
        "the discriminator's judgement is detached",
        "https://github.com/wangle53/CSA-CDGAN/issues/5",
    ),
    Case(
        "few_shot_meta",
        "GS304",
        "no_grad",
        "the same network runs in two regions without gradients; the loss comes of the second",
        "https://github.com/dragen1860/MAML-Pytorch/issues/40",
    ),
    Case(
        "copied_learner",
        "GS303",
        "deepcopy",
        "each task trains a deep copy, so the meta-parameters get no gradient",
        "",
        also=("GS307",),
    ),
    Case(
        "inner_step_through_data",
        "GS303",
        "create_graph",
        "the inner step is written through .data, so its graph is lost",
        "",
    ),
    Case(
        "ddpg_driver",
        "GS203",
        "Tanh",
        "raw states saturate the actor, whose loss is the second of two that call backward",
        "https://github.com/ZhihanLee/DDPG_Learning/issues/2",
    ),
    Case(
        "detached_between_blocks",
        "GS303",
        "detach",
        "a detach after every block starves them all: one finding",
        "",
    ),
    Case(
        "checkpointed_every_block",
        "GS309",
        "checkpoint",
        "a reentrant checkpoint around every block of a trunk whose input is data",
        "",
    ),
    Case(
        "blocks_in_a_list",
        "GS307",
        "",
        "nine blocks of three layers each in a plain list: one finding",
        "",
    ),
    Case(
        "margin_over_empty_rows",
        "GS101",
        "Div",
        "0/0 behind a hinge, which passes on zeros instead of NaN",
        "",
    ),
    Case(
        "generator_term_detached",
        "GS310",
        "detach",
        "the adversarial term of the generator is detached, its reconstruction is not",
        "",
    ),
    Case(
        "latent_drawn_by_sample",
        "GS310",
        "sample",
        "a VAE draws with sample: the encoder learns from the KL term only",
        "",
    ),
    Case(
        "policy_noise_by_sample",
        "GS304",
        "sample",
        "the action is drawn with sample, between the actor and the critic it climbs",
        "",
    ),
    Case(
        "penalty_without_graph",
        "GS303",
        "grad",
        "a gradient penalty without create_graph is a constant term",
        "",
    ),
    Case(
        "clipped_surrogate",
        "GS503",
        "Mul",
        "ratios [n] times advantages [n, 1], behind clamp and min",
        "",
    ),
    Case(
        "bootstrapped_target",
        "GS503",
        "",
        "rewards [n] plus values [n, 1] under no_grad, in the target",
        "",
    ),
    Case(
        "backward_writes_into_gradient",
        "GS601",
        "HardGate",
        "backward writes into its grad_output, which another branch gets too",
        "",
    ),
    Case(
        "activated_adapter",
        "GS309",
        "use_reentrant",
        "the offsets on the layers are cleared after the forward, the reentrant checkpoint "
        "recomputes without them, so the adapters are not in the recomputed graph",
        "https://github.com/huggingface/peft/issues/2826",
    ),
    Case(
        "adapters_under_checkpoint",
        "GS309",
        "use_reentrant",
        "reentrant checkpoint whose only input comes from frozen embeddings, so the block's "
        "adapters are outside of the graph",
        "https://github.com/microsoft/LoRA/issues/120",
    ),
    Case(
        "autoregressive_images",
        "GS313",
        "",
        "the weights themselves are bfloat16: steps of 1e-4 are rounded away",
        "https://github.com/hp-l33/AiM/issues/10",
    ),
    Case(
        "averaged_forecaster",
        "GS000",
        "",
        "the averaged weights are copied in for the validation and never restored",
        "https://github.com/PKU-YuanGroup/Open-Sora-Plan/issues/186",
    ),
    Case(
        "brain_float_lm",
        "GS313",
        "",
        "bfloat16 parameters with a learning rate of 1e-5: the update is rounded away",
        "https://github.com/meta-pytorch/torchtune/issues/2254",
    ),
    Case(
        "burgers_balanced_terms",
        "GS000",
        "",
        'one backward per condition without clearing, so each "norm of this condition" '
        "holds the conditions before it",
        "https://github.com/PINA-org/PINA/issues/718",
    ),
    Case(
        "cached_decoder",
        "GS304",
        "no_grad",
        "the cache's update is under no_grad and returns keys and values of its own",
        "https://github.com/huggingface/transformers/pull/43923",
    ),
    Case(
        "camera_pose",
        "GS503",
        "trans_gt",
        "(16,3,1,1) minus (16,3) broadcasts to (16,3,16,3)",
        "https://github.com/dingmyu/CamNet/pull/4",
    ),
    Case(
        "caption_extractor",
        "GS303",
        "output",
        "the forward hook hands on a detached copy",
        "https://github.com/lucidrains/CoCa-pytorch/issues/6",
    ),
    Case(
        "cart_dqn",
        "GS515",
        "clamp",
        "clamp without underscore: its result is thrown away and gradients are not limited",
        "https://github.com/pytorch/tutorials/pull/30",
    ),
    Case(
        "carvana_amp",
        "GS507",
        "gradient_clipping",
        "gradients are clipped while still multiplied by the scaler's 65536",
        "https://github.com/milesial/Pytorch-UNet/issues/468",
    ),
    Case(
        "chunked_character_lm",
        "GS505",
        "zero_grad",
        "zero_grad before each piece, but one step per document: only the last piece's "
        "gradient is used",
        "https://github.com/OpenNMT/OpenNMT-py/issues/891",
    ),
    Case(
        "detector_distillation",
        "GS307",
        "gradients",
        "the distillation loss owns 1x1 align convs; only the student's parameters go to the "
        "optimizer",
        "https://github.com/huangzongmou/yolov8_Distillation/issues/5",
    ),
    Case(
        "edge_attention_cora",
        "GS303",
        "tensor",
        "the sparse matrix is built from a copy of the scores (torch.tensor)",
        "https://github.com/diegoantognini/pyGAT/issues/11",
    ),
    Case(
        "face_margin",
        "GS307",
        "metric_fc",
        "the margin head has a weight of its own, which the optimizer does not hold",
        "https://github.com/4uiiurz1/pytorch-adacos/issues/6",
    ),
    Case(
        "factor_vae",
        "GS401",
        "optimizer",
        "the VAE steps before the discriminator's loss goes back through the same graph",
        "https://github.com/YannDubs/disentangling-vae/issues/62",
    ),
    Case(
        "flow_conditioned_weights",
        "GS205",
        "zero",
        "both factors of the low-rank correction start at zero",
        "https://github.com/wandb/senpai/pull/2385",
    ),
    Case(
        "gated_ctr_experts",
        "GS205",
        "softmax",
        "softmax over the top-1 logits only: a softmax over one element is the constant 1",
        "https://github.com/davidmrau/mixture-of-experts/issues/27",
    ),
    Case(
        "glide_prior",
        "GS106",
        "parameters",
        "AdamW's eps 1e-8 is 0 in float16, so entries with zero gradient become 0/0",
        "https://github.com/afiaka87/glide-finetune/issues/5",
    ),
    Case(
        "grown_vocabulary",
        "GS307",
        "gradients",
        "the embedding is replaced after the optimizer was built",
        "https://github.com/huggingface/transformers/pull/3532",
    ),
    Case(
        "hair_matting",
        "GS303",
        "argmax",
        "the edge loss takes argmax of the prediction",
        "https://github.com/wonbeomjang/mobile-hair-segmentation-pytorch/issues/3",
    ),
    Case(
        "half_precision_tagger",
        "GS106",
        "parameters",
        "Adam's eps 1e-8 is 0 in float16: rows with zero gradient get 0/0",
        "https://github.com/afiaka87/glide-finetune/issues/5",
    ),
    Case(
        "hospital_rounds",
        "GS307",
        "gradients",
        "the client takes a new model, its optimizer still holds the old one's parameters",
        "https://github.com/OpenMined/PySyft/pull/2268",
    ),
    Case(
        "indoor_depth",
        "GS105",
        "max_depth",
        "missing readings are 0 in the depth image: max_depth / 0 = inf in the target",
        "https://github.com/ialhashim/DenseDepth/issues/65",
    ),
    Case(
        "intent_and_slots",
        "GS307",
        "gradients",
        "the learned task weights live in the loss module, the optimizer has the model's "
        "parameters only",
        "https://github.com/ifzhang/FairMOT/issues/19",
    ),
    Case(
        "interest_fields",
        "GS307",
        "embedding_layer",
        "embeddings are kept in a plain dict, so parameters() does not have them",
        "https://github.com/RUCAIBox/RecBole/issues/1128",
    ),
    Case(
        "landmark_regression",
        "GS203",
        "softmax",
        "softmax of 1000 times the heatmap is one-hot",
        "https://github.com/Fdevmsy/PyTorch-Soft-Argmax/issues/3",
    ),
    Case(
        "latent_actions",
        "GS534",
        "",
        "the codebook loss uses the straight-through output, in which the code is detached",
        "https://github.com/showlab/Olaf-World/issues/8",
    ),
    Case(
        "latent_denoiser",
        "GS505",
        "zero_grad",
        "zero_grad in the loop over micro-batches: only the last of four counts",
        "https://github.com/bytetriper/RAE/issues/67",
    ),
    Case(
        "leaky_spikes",
        "GS000",
        "",
        "exp(-25 u) overflows for u < -3.5: inf / inf in the custom backward",
        "https://github.com/jeshraghian/snntorch/issues/427",
        also=("GS102",),
    ),
    Case(
        "learned_task_weights",
        "GS101",
        "torch",
        "the learned sigma is not kept positive: the optimizer carries it below 0, log is NaN",
        "https://github.com/QunBB/DeepLearning/issues/1",
        also=("GS206",),
    ),
    Case(
        "logits_distillation",
        "GS316",
        "kl_div_loss",
        "the soft loss compares the teacher with itself",
        "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66",
    ),
    Case(
        "lsq_quantiser",
        "GS307",
        "weight_quantizer",
        "the step size becomes an nn.Parameter in the first forward, after the optimizer took"
        " model.parameters()",
        "https://github.com/ZouJiu1/LSQplus/issues/1",
    ),
    Case(
        "masked_audio_units",
        "GS303",
        "targets",
        "the targets are detached although the codebook learns through them",
        "https://github.com/facebookresearch/fairseq2/pull/731",
    ),
    Case(
        "melody_lstm",
        "GS000",
        "",
        "the history is cut for a tensor only, an LSTM's state is a tuple",
        "https://github.com/Lightning-AI/pytorch-lightning/pull/8145",
        also=("GS402",),
    ),
    Case(
        "mobile_segmenter",
        "GS312",
        "Conv2d",
        "the shortcut's conv is made inside forward, new and random at each call",
        "https://github.com/lafith/Mobile-UNet/issues/1",
    ),
    Case(
        "multi_view_nerf",
        "GS102",
        "torch",
        "sqrt of a variance that is exactly 0 where all views agree",
        "https://github.com/zju3dv/ENeRF/issues/17",
    ),
    Case(
        "oscillator_quasi_newton",
        "GS501",
        "Gradients",
        "zero_grad outside of the LBFGS closure, which is evaluated many times in one step",
        "https://github.com/Lightning-AI/pytorch-lightning/issues/4083",
    ),
    Case(
        "pairwise_ranking_shop",
        "GS101",
        "torch",
        "difference of two sigmoids instead of the sigmoid of the difference: log of negative"
        " numbers",
        "https://github.com/tanatosuu/GDE/issues/3",
    ),
    Case(
        "patch_descriptor",
        "GS101",
        "descr",
        "eps=1e-10 rounds to 0 in float16: flat patches give 0/sqrt(0)",
        "https://github.com/kornia/kornia/issues/4224",
        also=("GS301",),
    ),
    Case(
        "period_blocks",
        "GS401",
        "unbiased",
        "x_enc /= stdev changes what var saved for the backward",
        "https://github.com/thuml/Time-Series-Library/issues/699",
    ),
    Case(
        "phase_spectrum_loss",
        "GS102",
        "torch",
        "torch.angle of a spectrum of about 1e-20 (faded note) has a NaN derivative",
        "https://github.com/csteinmetz1/auraloss/issues/49",
    ),
    Case(
        "piano_transcription",
        "GS506",
        "clip_gradient_norm",
        "clip_grad_norm_ is called after optimizer.step()",
        "https://github.com/jongwook/onsets-and-frames/issues/24",
    ),
    Case(
        "population_members",
        "GS307",
        "deepcopy",
        "after deepcopy the optimizer still holds the parameters of the old model",
        "https://github.com/skorch-dev/skorch/issues/317",
    ),
    Case(
        "posterior_weights",
        "GS000",
        "",
        "the KL is computed on copies of the parameters that the data never meet",
        "https://github.com/kumar-shridhar/PyTorch-BayesianCNN/issues/7",
    ),
    Case(
        "pursuit_team",
        "GS000",
        "",
        "the soft update is loaded into the online network instead of the target",
        "https://github.com/reinshift/MADDPG_Multi_UAV_Roundup/issues/10",
    ),
    Case(
        "siamese_tracker",
        "GS307",
        "gradients",
        "the 1x1 layer between correlation and head is in no parameter group",
        "https://github.com/ohhhyeahhh/SiamCAR/issues/18",
    ),
    Case(
        "sine_adaptation",
        "GS303",
        "deepcopy",
        "inner step through .data on a deep copy: no path from the query loss to the meta "
        "parameters",
        "https://github.com/KanishJebaMathewM/Truxify/issues/13118",
        also=(
            "GS307",
            "GS506",
        ),
    ),
    Case(
        "slope_matching",
        "GS303",
        "retain_graph",
        "autograd.grad without create_graph inside the loss",
        "https://github.com/pytorch/pytorch/issues/31984",
    ),
    Case(
        "soft_actor_pendulum",
        "GS307",
        "log_alpha",
        "log_alpha is replaced by a clone after its optimizer was built",
        "https://github.com/ray-project/ray/issues/11294",
        also=("GS310",),
    ),
    Case(
        "step_in_backward",
        "GS506",
        "clip_grad_norm_",
        "the hook steps and frees each gradient during backward, the clipping after it sees None",
        "https://github.com/pytorch/torchtitan/issues/990",
    ),
    Case(
        "style_by_lbfgs",
        "GS501",
        "Gradients",
        "the closure does not zero: LBFGS calls it 8 times per step, gradients pile up",
        "https://github.com/Lightning-AI/pytorch-lightning/pull/6147",
    ),
    Case(
        "superresolution_gan",
        "GS304",
        "no_grad",
        "the image made under no_grad for the discriminator is used for the generator's loss too",
        "https://github.com/Lornatang/SRGAN-PyTorch/issues/37",
    ),
    Case(
        "tiny_gpt_scaled",
        "GS507",
        "clip_grad_norm_",
        "clip_grad_norm_ on gradients that are still multiplied by the scaler's 65536",
        "https://github.com/pytorch/examples/issues/1196",
    ),
    Case(
        "tour_reinforce",
        "GS533",
        "",
        "the baseline is not detached in the policy's loss",
        "https://github.com/astariul/encode-attend-navigate-pytorch/pull/3",
    ),
    Case(
        "two_view_pretraining",
        "GS000",
        "",
        "the target projection is not detached (stop-gradient missing)",
        "https://github.com/lightly-ai/lightly/issues/559",
    ),
    Case(
        "vision_language_tower",
        "GS304",
        "no_grad",
        "forward is decorated with torch.no_grad though the tower is to be tuned",
        "https://github.com/TinyLLaVA/TinyLLaVA_Factory/issues/17",
    ),
    Case(
        "voice_conversion",
        "GS501",
        "Gradients",
        "at the epoch's end both optimizers step once more, without the scaler, with the last"
        " batch's gradients",
        "https://github.com/IAHispano/Applio/pull/860",
    ),
    Case(
        "wake_word",
        "GS505",
        "zero_grad",
        "zero_grad in each iteration throws the accumulated gradients away, the step waits "
        "for several",
        "https://github.com/dscripka/openWakeWord/issues/316",
    ),
    Case(
        "warmup_per_group",
        "GS000",
        "",
        "the end of the warm-up sets the biases' learning rate to 0 for good",
        "https://github.com/MultimediaTechLab/YOLO/issues/122",
    ),
    Case(
        "answer_attention",
        "GS205",
        "softmax",
        "softmax over a dimension of size 1: all weights are 1 and the scorer gets no gradient.",
        "https://github.com/DEEP-PolyU/KEQA_WSDM19/issues/2",
    ),
    Case(
        "background_resample",
        "GS401",
        "optimizer",
        "The second loss shares the graph through the classifier, whose weights "
        "optimizer.step() has changed before it is differentiated (the exception of the "
        "report).",
        "https://github.com/JerryYLi/bg-resample-ood/issues/1",
    ),
    Case(
        "cold_start",
        "GS303",
        "load_state_dict",
        "load_state_dict copies the adapted weights as numbers: the query loss has no path to"
        " the step sizes (nor to second order).",
        "https://github.com/hoyeoplee/MeLU/issues/9",
        also=("GS302",),
    ),
    Case(
        "completion_lengths",
        "GS102",
        "student",
        "-inf padding in the teacher; nan_to_num mends the value but the product behind it "
        "returns 0 * inf = NaN in the backward pass.",
        "https://github.com/huggingface/trl/pull/5594",
    ),
    Case(
        "federated_recon",
        "GS303",
        "loss_adv",
        "The adversarial loss is made a number before it is added to the loss.",
        "https://github.com/guopengf/FL-MRCM/issues/10",
    ),
    Case(
        "gae_pendulum",
        "GS000",
        "",
        "The critic loss squares the undetached advantages, so the gradient also runs through"
        " the bootstrapped targets.",
        "https://github.com/Farama-Foundation/Gymnasium/issues/1494",
    ),
    Case(
        "lattice_scores",
        "GS601",
        "TotalScoreFunction",
        "The backward of the custom function ignores the incoming gradient (wrong sign of the"
        " numerator).",
        "https://github.com/k2-fsa/k2/issues/341",
    ),
    Case(
        "low_light",
        "GS303",
        "torch",
        "torch.histc has no derivative: the term is a constant for autograd (silently, "
        "requires_grad False).",
        "https://github.com/albrateanu/LYT-Net/issues/16",
    ),
    Case(
        "resampled_allocation",
        "GS304",
        "per_draw",
        "sample() instead of rsample(): the network in front gets no gradient.",
        "https://github.com/jankrepl/deepdow/pull/106",
    ),
    Case(
        "residual_codec",
        "GS000",
        "",
        "The undetached straight-through output is subtracted, so the gradient of the "
        "residual cancels and the later commitment losses have none.",
        "https://github.com/lucidrains/vector-quantize-pytorch/issues/33",
    ),
    Case(
        "sharp_student",
        "GS102",
        "teacher_log",
        "kl_div with a differentiable target that underflows to 0: finite loss, NaN gradient.",
        "https://github.com/MakazhanAlpamys/Soup/issues/719",
    ),
    Case(
        "soft_actor_arm",
        "GS303",
        "detach",
        'The "fix" of an in-place error detaches Q in the actor loss: only the entropy term'
        " is left.",
        "https://github.com/TianhongDai/reinforcement-learning-algorithms/issues/8",
    ),
    Case(
        "spoken_masker",
        "GS102",
        "keepdim",
        "sqrt of 0 in silent segments: infinite derivative times 0.",
        "https://github.com/mpariente/pytorch_stoi/issues/7",
    ),
    Case(
        "tabular_members",
        "GS506",
        "clip_grad_norm_",
        "Clipping stands before backward, where there are no gradients yet.",
        "https://github.com/yandex-research/tabm/issues/20",
    ),
    Case(
        "video_tokenizer",
        "GS303",
        "output",
        "The hook that records features detaches them: the perceptual loss has no gradient.",
        "https://github.com/myscience/open-genie/issues/6",
    ),
    Case(
        "tabular_critic",
        "GS303",
        "grad",
        "the gradient penalty is made by autograd.grad with retain_graph but without create_graph",
        "https://github.com/ooples/AiDotNet/issues/1844",
    ),
    Case(
        "hifi_vocoder_mel",
        "GS303",
        "data",
        "the mel transform takes `.data` of the magnitudes, so the mel loss (weight 45) "
        "trains nothing; adversarial and feature losses hide it",
        "https://github.com/rishikksh20/HiFi-GAN/issues/8",
    ),
    Case(
        "continual_oml",
        "GS000",
        "",
        "inner loop gradients without create_graph: the outer loss only gets a first-order "
        "meta-gradient",
        "https://github.com/uvm-neurobotics-lab/ANML/issues/3",
    ),
    Case(
        "protein_graphs",
        "GS307",
        "graph_convs",
        "the graph convolutions are in a Python list, so they are no parameters and are never"
        " trained",
        "https://github.com/qbxlvnf11/graph-neural-networks-for-graph-classification/pull/3",
    ),
    Case(
        "retrieval_token_lm",
        "GS000",
        "",
        "the LM is frozen before resize_token_embeddings, which makes new, trainable "
        "embedding and head",
        "https://github.com/kohjingyu/fromage/issues/18",
    ),
    Case(
        "minsnr_images",
        "GS105",
        "capped",
        "zero terminal SNR: the loss weight min(snr, g)/snr is 0/0 at the last timestep",
        "https://github.com/TiankaiHang/Min-SNR-Diffusion-Training/pull/4",
    ),
    Case(
        "boundary_spans",
        "GS102",
        "log1p",
        "in bfloat16 `1 - 1e-6` is 1, the clamp does nothing, log1p(-1) = -inf; the loss "
        "stays finite (1-exp(-inf)), only the backward gives NaN",
        "https://github.com/fastino-ai/GLiNER2/pull/155",
    ),
    Case(
        "dreamer_latent",
        "GS401",
        "value_opt.step",
        "value_opt.step() changes the weights in place that the actor loss' graph still needs",
        "https://github.com/cross32768/Dreamer_PyTorch/issues/2",
    ),
    Case(
        "siamese_signatures",
        "GS102",
        "sqrt",
        "sqrt at distance 0 (the same scan twice): inf * 0 in the backward",
        "https://github.com/adambielski/siamese-triplet/issues/18",
    ),
    Case(
        "lesion_overlap",
        "GS303",
        "gt",
        "the thresholded mask is put into torch.tensor(..., requires_grad=True): backward "
        "runs, but to a new leaf",
        "https://github.com/qubvel-org/segmentation_models.pytorch/pull/611",
    ),
    Case(
        "ctc_words",
        "GS101",
        "loss",
        "utterances that are too short for their targets (after subsampling by four): CTC "
        "loss inf, gradient NaN",
        "https://github.com/wenet-e2e/wenet/pull/2299",
    ),
    Case(
        "domain_digits",
        "GS000",
        "",
        "gamma is negative, so the reversal layer's constant is negative, and its neg() is "
        "undone: gradient is not reversed",
        "https://github.com/CuthbertCai/pytorch_DANN/issues/10",
    ),
    Case(
        "dialog_agent",
        "GS533",
        "",
        "the reward of REINFORCE is not detached: the policy term trains the image head "
        "through the reward, weighted with log-probs",
        "https://github.com/batra-mlp-lab/visdial-rl/issues/13",
    ),
    Case(
        "heat_rod",
        "GS000",
        "",
        "ReLU in a PINN: u_xx is 0 everywhere, the diffusion term and its coefficient get no "
        "gradient",
        "https://github.com/ComputationalDomain/PINNs/issues/1",
    ),
    Case(
        "radar_vae",
        "GS505",
        "zero_grad",
        "zero_grad after each micro batch: three of four accumulated gradients are thrown away",
        "https://github.com/gaozhihan/PreDiff/issues/32",
    ),
    Case(
        "audio_transfer",
        "GS000",
        "",
        "set_trainable only changes parameters that have requires_grad, so what was frozen "
        "stays frozen in the fine-tuning stage",
        "https://github.com/nttcslab/byol-a/issues/7",
    ),
    Case(
        "toxicity_panel",
        "GS102",
        "target",
        "missing labels (NaN) are masked after the squared error: 0 * NaN in the backward",
        "https://github.com/pytorch/pytorch/issues/64305",
    ),
    Case(
        "scl_sentences",
        "GS303",
        "detach",
        "the contrastive term (90 % of the loss) is computed in numpy from detached embeddings",
        "https://github.com/sl-93/SUPERVISED-CONTRASTIVE-LEARNING-FOR-PRE-TRAINED-LANGUAGE-"
        "MODEL-FINE-TUNING/issues/2",
    ),
    Case(
        "quant_mcu",
        "GS601",
        "FakeQuant",
        "a straight-through estimator returns its mask instead of the masked gradient",
        "https://github.com/microsoft/nni/pull/3160",
    ),
    Case(
        "kd_intent",
        "GS512",
        "kl_div",
        "kl_div is given the softmax of the student, not its log_softmax",
        "https://github.com/microsoft/ProDA/issues/43",
    ),
    Case(
        "heat_residual",
        "GS306",
        "Slice",
        "x and t are sliced after the network ran; allow_unused and zeros for None hide that the "
        "residual is a constant 0",
        "https://discuss.pytorch.org/t/efficient-calculation-of-derivatives-for-pinn-solvers-in-"
        "pytorch/177249",
    ),
    Case(
        "cell_search",
        "GS000",
        "",
        "The weights' SGD also holds alpha, the architecture parameters, so training data "
        "moves them",
        "https://github.com/dragen1860/DARTS-PyTorch/issues/5",
    ),
    Case(
        "cloze_patterns",
        "GS505",
        "gradient_accumulation_steps",
        "The step counter restarts each epoch and never reaches the accumulation length (2 "
        "batches, 4 needed)",
        "https://github.com/timoschick/pet/pull/25",
    ),
    Case(
        "grasp_temperature",
        "GS205",
        "target_entropy",
        "log_pi is not detached in the temperature loss, which here cancels the actor's "
        "entropy term exactly",
        "https://github.com/mani-skill/ManiSkill/issues/899",
    ),
    Case(
        "jacobian_penalty",
        "GS306",
        "model",
        "The function given to `jacobian` ignores its weights and calls the module, so the "
        "Jacobian is all zeros",
        "https://github.com/pytorch/pytorch/issues/49171",
    ),
    Case(
        "momentum_queue",
        "GS503",
        "",
        "(N,1) / ((N,1)+(N)) broadcasts to (N,N): each positive is normalised with the "
        "negatives of all samples",
        "https://github.com/Seonghoon-Yu/MoCov2_Pytorch_tutorial/issues/2",
    ),
    Case(
        "novel_views",
        "GS518",
        "gradients",
        "scaler.update() is skipped with the step when the gradient is large, so the next "
        "unscale_ raises",
        "https://github.com/Haian-Jin/LVSM/pull/19",
    ),
    Case(
        "semantic_ids",
        "GS534",
        "",
        "The codebook loss is taken on the straight-through value, whose code part is detached",
        "https://github.com/EdoardoBotta/RQ-VAE-Recommender/pull/26",
    ),
    Case(
        "sparse_codes",
        "GS601",
        "ThresholdFunction",
        "The threshold Function's backward masks the wrong side",
        "https://github.com/pytorch/pytorch/pull/1863",
    ),
    Case(
        "planar_vae",
        "GS530",
        "Sum",
        "the log-determinant of each sample is summed over the batch, and weighs 50 times as much",
        "https://github.com/wohlert/semi-supervised-pytorch/issues/21",
    ),
    Case(
        "two_tower_rank",
        "GS508",
        "features",
        "item vectors are computed once before the loop; retain_graph hides that the item "
        "tower's updates never enter the forward",
        "https://github.com/rentruewang/brief/issues/1",
    ),
    Case(
        "flat_store_finetune",
        "GS307",
        "clone",
        "the optimizer gets clones of the weights, which forward does not use",
        "https://github.com/pytorch/executorch/pull/6039",
    ),
    Case(
        "depth_egomotion",
        "GS505",
        "step",
        "the optimizer steps only where there is no scheduler",
        "https://github.com/ClementPinard/SfmLearner-Pytorch/issues/5",
    ),
    Case(
        "binary_lenet",
        "GS410",
        "BinActive",
        "backward stands inside of forward, so the Function has none",
        "https://github.com/jiecaoyu/XNOR-Net-PyTorch/issues/125",
    ),
    Case(
        "jacobian_filter",
        "GS304",
        "inference_mode",
        "enable_grad inside of the inference mode of a trainer, whose test takes a Jacobian",
        "https://github.com/Lightning-AI/pytorch-lightning/issues/19910",
    ),
    Case(
        "diffusion_1d",
        "GS402",
        "to_channels",
        "the data is convolved once before the loop, so every batch hangs on one graph that "
        "the first backward frees",
        "https://github.com/lucidrains/denoising-diffusion-pytorch/issues/109",
        also=("GS307",),
    ),
    Case(
        "dp_classifier",
        "GS307",
        "stem.norm",
        "batch norms are replaced by group norms after the optimizer was made",
        "https://github.com/meta-pytorch/opacus/issues/432",
    ),
    Case(
        "cluster_forces",
        "GS502",
        "total",
        "epoch losses are added up and kept as tensors; validation has graphs, too, for the forces",
        "https://github.com/pytorch/pytorch/issues/64586",
    ),
    Case(
        "mesh_refine",
        "GS204",
        "zeros",
        "all graph convolutions of a stage begin at zero, with a ReLU behind each",
        "https://github.com/facebookresearch/pytorch3d/issues/147",
    ),
    Case(
        "reverb_gan",
        "GS317",
        "detach",
        "the discriminator gets the detached fake in the generator step",
        "https://github.com/nikhilsinghmus/image2reverb/issues/37",
    ),
    Case(
        "splat_fit",
        "GS306",
        "means2d",
        "the densification reads .grad of projected means, on which retain_grad() was not called",
        "https://github.com/nerfstudio-project/gsplat/issues/390",
    ),
    Case(
        "sr_attention",
        "GS401",
        "out",
        "a block writes quadrants into its input, which a branch beside it has saved",
        "https://github.com/Jee-King/TSAN/issues/3",
    ),
    Case(
        "checkpointed_encoder",
        "GS309",
        "use_reentrant",
        "reentrant checkpoints from the first layer on, whose input is data",
        "https://github.com/pytorch/pytorch/issues/33962",
    ),
    Case(
        "crystal_property",
        "GS503",
        "loss_func",
        "predictions [N] against targets [N, 1]",
        "https://github.com/IntelLabs/matsciml/pull/347",
    ),
    Case(
        "reinforce_pendulum",
        "GS530",
        "mean",
        "the mean of the log-probabilities of an episode times the returns",
        "https://github.com/Farama-Foundation/Gymnasium/issues/1336",
    ),
    Case(
        "smiles_policy_gradient",
        "GS303",
        "item",
        "the policy loss adds up log_probs.item(); a zero that requires grad lets backward run",
        "https://github.com/isayev/ReLeaSE/issues/39",
        also=("GS506",),
    ),
    Case(
        "cell_detector",
        "GS101",
        "Log",
        "a log loss written by hand has no small constant in its logarithm, which a "
        "saturated sigmoid reaches",
        "https://github.com/miemie2013/Paddle-DIOU-YOLOv3/issues/1",
    ),
    Case(
        "clip_pose",
        "GS413",
        "param.grad",
        "gradients are rescaled by hand, and those of heads that are not in the loss are None",
        "https://github.com/MichiganCOG/ViP/issues/21",
    ),
    Case(
        "deblur_rays",
        "GS401",
        "theta",
        "theta += eps changes the norm that its own backward needs, once the kernel is switched on",
        "https://github.com/dogyoonlee/DP-NeRF/issues/2",
    ),
    Case(
        "pafpn_detector",
        "GS401",
        "downsample_convs",
        "the bottom-up path adds in place to what a ReLU returned",
        "https://github.com/open-mmlab/mmdetection/pull/9450",
    ),
    Case(
        "svi_schedule",
        "GS505",
        "scheduler",
        "a wrapper keeps the scheduler in place of the optimizer, and steps only that",
        "https://github.com/pyro-ppl/pyro/issues/1242",
    ),
    Case(
        "ctc_speech",
        "GS518",
        "scaler",
        "the scaler steps the optimizer of a frozen encoder, whose parameters have no gradient",
        "https://github.com/speechbrain/speechbrain/pull/1728",
    ),
    Case(
        "goal_traj",
        "GS303",
        "detach_",
        "the output of the goal layers is detached in place right behind them",
        "https://github.com/Tsinghua-MARS-Lab/DenseTNT/issues/11",
    ),
    Case(
        "tabular_gate",
        "GS601",
        "SigmoidFn",
        "backward of a hand-written sigmoid leaves out the gradient that comes in",
        "https://github.com/apache/mxnet/issues/9872",
        also=("GS101",),
    ),
)

HEALTHY: tuple[Healthy, ...] = (
    Healthy(
        "straight_through",
        "straight-through estimator for a binary layer",
    ),
    Healthy(
        "mean_teacher",
        "teacher kept by exponential average, its output detached",
    ),
    Healthy(
        "linear_probe",
        "frozen backbone under no_grad, only the head is given to the optimizer",
        information=("GS305",),
    ),
    Healthy(
        "angles_at_origin",
        "atan2(0, 0): a gradient of zero, by definition",
    ),
    Healthy(
        "micro_batches",
        "gradient accumulation over a fixed number of micro-batches",
    ),
    Healthy(
        "tied_weights",
        "input and output embedding are one parameter",
    ),
    Healthy(
        "gan_two_optimizers",
        "each player is stepped by its own optimizer; the other gets gradients too",
    ),
    Healthy(
        "dropout_zeros",
        "dropout and dropped paths make exact zeros in the gradient",
    ),
    Healthy(
        "padded_attention",
        "-inf masks, every row keeps at least one key",
    ),
    Healthy(
        "rare_tokens",
        "embedding rows not in the batch, and a padding index",
    ),
    Healthy(
        "truncated_bptt",
        "the hidden state is detached between windows",
    ),
    Healthy(
        "q_learning",
        "target network under no_grad, argmax for the greedy action",
    ),
    Healthy(
        "policy_gradient",
        "REINFORCE with a detached advantage and item() in the log",
    ),
    Healthy(
        "gumbel_choice",
        "hard Gumbel softmax: argmax inside, gradients pass",
    ),
    Healthy(
        "checkpointed_blocks",
        "non-reentrant checkpoints, also on raw inputs",
    ),
    Healthy(
        "parametrised_norms",
        "weight norm and spectral norm",
    ),
    Healthy(
        "gradient_penalty",
        "create_graph for a penalty on the slope",
    ),
    Healthy(
        "inner_loop",
        "MAML: a differentiable inner step",
    ),
    Healthy(
        "physics_informed",
        "derivatives of the network in the loss",
    ),
    Healthy(
        "variational_autoencoder",
        "reparametrisation, exp of a log-variance",
    ),
    Healthy(
        "lstm_many_steps",
        "gradients fade over 80 steps; that is what an LSTM does on a task of short memory",
    ),
    Healthy(
        "lstm_cell_tagger",
        "200 steps of a cell: what the first words bring is forgotten, and every weight learns",
        information=("GS201",),
    ),
    Healthy(
        "bfloat16_autocast",
        "autocast on the CPU, bfloat16, and a GradScaler that is off",
    ),
    Healthy(
        "clipped_gradients",
        "clipping with a norm of one, a safeguard",
        information=("GS504",),
    ),
    Healthy(
        "lbfgs_closure",
        "LBFGS calls the closure several times in a step",
    ),
    Healthy(
        "evaluation_between_epochs",
        "evaluation under no_grad, accuracy by argmax, early stopping, scheduler",
    ),
    Healthy(
        "alternating_tasks",
        "each head is unused in one step and used in the next",
    ),
    Healthy(
        "sparse_embedding",
        "sparse gradients and SparseAdam",
    ),
    Healthy(
        "mixture_of_experts",
        "experts that no token of the batch was sent to",
    ),
    Healthy(
        "relu_some_dead",
        "a wide ReLU net where a few units never fire",
    ),
    Healthy(
        "custom_function_right",
        "a custom Function with the right derivative, None for a number",
    ),
    Healthy(
        "hooks_for_logging",
        "hooks that only look, retain_grad on an activation",
    ),
    Healthy(
        "fake_quantisation",
        "quantisation-aware training: observer buffers, STE with a clipped range",
    ),
    Healthy(
        "gradual_unfreezing",
        "groups with their own rates; the trunk is unfrozen after two epochs",
        information=("GS305",),
    ),
    Healthy(
        "last_blocks_only",
        "the optimizer gets the last blocks of a list, and the biases of nothing else",
        information=("GS307",),
    ),
    Healthy(
        "two_phases",
        "two optimizers hold the same parameters, one after the other",
    ),
    Healthy(
        "delta_made_anew",
        "adversarial noise is a new Parameter for each batch; its gradient is read",
    ),
    Healthy(
        "frozen_body_kept_in_eval",
        "train() is overridden so that frozen batch norms stay in eval mode; an average is kept",
    ),
    Healthy(
        "functional_transforms",
        "torch.func: vmap of grad, functional_call",
    ),
    Healthy(
        "contrastive_pairs",
        "cosine similarity of all pairs: [n, 1] against [1, n] on purpose",
    ),
    Healthy(
        "ctc_recogniser",
        "CTC: impossible alignments are -inf inside, zero_infinity on",
    ),
    Healthy(
        "safe_numerics",
        "log-sum-exp, clamp before log, where used safely, x / (norm + eps)",
    ),
    Healthy(
        "style_transfer",
        "the image is the leaf, the network is fixed and in no optimizer",
        information=("GS305",),
    ),
    Healthy(
        "vector_quantised",
        "VQ: argmin chooses, detach in both directions",
    ),
    Healthy(
        "several_losses_retained",
        "two backward calls on one graph with retain_graph, one step",
    ),
    Healthy(
        "zero_initialised_output",
        "the last layer starts at zero, as residual branches often do",
    ),
    Healthy(
        "dit_adaln_zero",
        "diffusion transformer whose gates and last layer start at zero",
    ),
    Healthy(
        "lora_finetune",
        "LoRA injected in place of linear layers, B = 0, base frozen",
    ),
    Healthy(
        "early_exit_phases",
        "exits trained in phases: later blocks and heads take no part yet",
    ),
    Healthy(
        "grad_scaler_warmup",
        "the scaler starts too high and comes down, as it is meant to",
        information=("GS103",),
    ),
    Healthy(
        "infonce_queue",
        "momentum encoder, queue of negatives, no_grad and detach on purpose",
    ),
    Healthy(
        "coupling_flow",
        "normalizing flow whose couplings start at the identity",
    ),
    Healthy(
        "hinge_all_satisfied",
        "batch-hard triplets: most margins are kept, most gradients are 0",
    ),
    Healthy(
        "hmm_large_negative",
        "forward algorithm with -1e30 for what is forbidden",
    ),
    Healthy(
        "mobile_hard_activations",
        "ReLU6, hard swish and hard sigmoid, residual branches that start at zero",
    ),
    Healthy(
        "annealed_terms",
        "two terms of the loss have weight 0 in the first steps",
    ),
    Healthy(
        "safe_where_everywhere",
        "where with a harmless operand inside, and forces by a second derivative",
    ),
    Healthy(
        "masked_softmax_right",
        "rows without any key are put back to 0 before and after the softmax",
    ),
    Healthy(
        "lsq_quantised",
        "learned step size quantisation with detach tricks",
    ),
    Healthy(
        "tiny_nerf",
        "densities behind a ReLU, transmittance by cumprod",
    ),
    Healthy(
        "pgd_training",
        "adversarial training: sign and clamp on gradients, not on the way of them",
    ),
    Healthy(
        "rezero_bf16",
        "residual weights start at 0, bfloat16 autocast, padding",
    ),
    Healthy(
        "hinge_gan",
        "hinge losses of a GAN with spectral norm",
    ),
    Healthy(
        "adversarial_training",
        "PGD inside the training loop, a class from exec",
    ),
    Healthy(
        "alternating_unfreeze",
        "groups thawed one after another, a block used twice",
        information=("GS305",),
    ),
    Healthy(
        "autocast_weight_cache",
        "a first pass under no_grad inside the same autocast",
    ),
    Healthy(
        "momentum_contrast",
        "MoCo: momentum encoder and a queue",
        information=("GS305",),
    ),
    Healthy(
        "distillation_mixed",
        "frozen teacher, temperature clamped under no_grad",
    ),
    Healthy(
        "dqn_replay",
        "replay, target network by .data.copy_, clipping by .data",
    ),
    Healthy(
        "ema_teacher_early_stop",
        "EMA teacher, pseudo labels, early stopping",
    ),
    Healthy(
        "feature_extraction_head",
        "features cached under inference_mode, then all unfrozen",
    ),
    Healthy(
        "lbfgs_neural_style",
        "LBFGS on a picture, losses inside modules",
    ),
    Healthy(
        "maml_second_order",
        "many autograd.grad calls before the first backward",
    ),
    Healthy(
        "ppo_clipped",
        "old log probabilities from a rollout under no_grad",
    ),
    Healthy(
        "r1_with_augmentation",
        "R1 penalty through grid_sample",
    ),
    Healthy(
        "simsiam",
        "stop-gradient on targets",
    ),
    Healthy(
        "tbptt_language_model",
        "state repackaged, tied weights, descent by hand",
    ),
    Healthy(
        "vae_beta_schedule",
        "VAE, micro-batches, non-reentrant checkpoint",
    ),
    Healthy(
        "wgan_clipping",
        "weights clipped through .data after each step",
    ),
    Healthy(
        "dual_ascent",
        "a multiplier moved by hand against its gradient",
    ),
    Healthy(
        "ewc_fisher_first",
        "many backward calls and zero_grad before any step, gradients read",
    ),
    Healthy(
        "fomaml_many_inner",
        "inner steps by autograd.grad, a copied learner",
    ),
    Healthy(
        "gradients_handed_back",
        "first-order MAML: the gradients of deep copies are handed to the originals",
        information=("GS307",),
    ),
    Healthy(
        "step_inside_backward",
        "every parameter has an optimizer that steps in a hook, while backward runs",
    ),
    Healthy(
        "scaler_and_clipping",
        "scaled, unscaled, clipped and stepped in the right order; the first step is left out",
    ),
    Healthy(
        "force_field",
        "energies and forces, evaluation without create_graph",
    ),
    Healthy(
        "pgd_before_first_step",
        "many backward calls on a leaf of the loop before the first step",
    ),
    Healthy(
        "sam_two_passes",
        "an own optimizer with a closure and two steps",
    ),
    Healthy(
        "padding_rows_normalised",
        "rows of zeros are normalised, and their gradient is multiplied by zero",
    ),
    Healthy(
        "scaled_before_norm",
        "one layer has much larger weights, which a BatchNorm takes back",
    ),
    Healthy(
        "half_with_scaler",
        "a loss weighted down in float16, with a gradient scaler",
    ),
    Healthy(
        "stop_gradients",
        "stop-gradients of every kind that are meant",
        information=("GS303", "GS317"),
    ),
    Healthy(
        "gan_seldom_critic",
        "the critic's loss is sent back in every iteration, and used in every third",
    ),
    Healthy(
        "halves_of_a_batch",
        "a part of one batch gives labels only, behind a detach",
    ),
    Healthy(
        "all_pairs",
        "pairs of all with all: ranking, distances, a bias",
    ),
    Healthy(
        "adapters_between",
        "adapters alone in the optimizer, a network in the loss, a copy that learns by hand",
        information=("GS307",),
    ),
    Healthy(
        "batches_left_out",
        "gradients that are measured, asked for by an input, or too large, and dropped",
    ),
    Healthy(
        "backtracking_search",
        "a line search that steps from the same place again, a gradient put in place by hand",
    ),
    Healthy(
        "actor_critic_shared",
        "sampled actions, detached advantages, one body for both",
    ),
    Healthy(
        "corners_of_a_grid",
        "whole numbers as indices, and the rest as weights",
    ),
    Healthy(
        "equilibrium_layer",
        "a custom Function with a graph of its own, whose leaves are no parameters",
    ),
    Healthy(
        "quantised_wide",
        "rounding, a spike and a reversed gradient in Functions of many elements",
    ),
    Healthy(
        "backward_cut_short",
        "a hook ends backward on purpose by an exception that is caught",
        information=("GS410",),
    ),
    Healthy(
        "spiking_lif",
        "spiking neurons with a surrogate gradient",
    ),
    Healthy(
        "ddpg_point_mass",
        "the actor's backward fills the critic's gradients, which are zeroed before use",
    ),
    Healthy(
        "shared_encoder_actor_critic",
        "the actor leaves the encoder to the critic",
    ),
    Healthy(
        "domain_reversal",
        "gradient reversal whose strength begins at zero",
    ),
    Healthy(
        "reptile_sines",
        "gradients written as differences of weights, inner steps by hand",
        information=("GS307",),
    ),
    Healthy(
        "fomaml_copied_gradients",
        "gradients of copies are handed to the original",
    ),
    Healthy(
        "sam_optimizer_class",
        "weights change between two backward calls, and back",
    ),
    Healthy(
        "pcgrad_three_tasks",
        "three backward calls through one graph, gradients rewritten",
    ),
    Healthy(
        "diffusion_trainer",
        "a scaler skips steps, clipping after unscale_, a last incomplete window",
        information=("GS504",),
    ),
    Healthy(
        "lora_checkpointed",
        "adapters under reentrant checkpoints, with a hook that makes inputs require grad",
    ),
    Healthy(
        "hint_stages",
        "two stages, each with a part that the other does not use",
    ),
    Healthy(
        "byol_views",
        "targets of a copy that no optimizer holds",
    ),
    Healthy(
        "gan_accumulated",
        "accumulation in both networks, gradients of one filled by the other",
    ),
    Healthy(
        "progressive_stages",
        "blocks that join the optimizer later, with a weight of zero at first",
    ),
    Healthy(
        "adapters_per_domain",
        "three of four adapters without gradient in every batch",
    ),
    Healthy(
        "cascade_exits",
        "fewer and fewer samples reach later stages",
    ),
    Healthy(
        "residual_codebooks",
        "codebooks that are moved by averages",
    ),
    Healthy(
        "orthogonal_tbptt",
        "half of a matrix is never read, the state is detached every chunk",
    ),
    Healthy(
        "prompt_tokens",
        "nearly all is frozen, a hook zeroes rows on purpose",
    ),
    Healthy(
        "influence_of_points",
        "gradients with create_graph that no step uses",
    ),
    Healthy(
        "trust_region_policy",
        "a term that is exactly zero is differentiated twice",
        information=("GS307",),
    ),
    Healthy(
        "attribution_prior",
        "an attack's gradients are cleared, attributions are trained",
    ),
    Healthy(
        "fused_layer_functions",
        "custom Functions with None for what needs no gradient",
    ),
    Healthy(
        "evolved_controller",
        "a controller that learns without gradients beside a model that has some",
    ),
    Healthy(
        "item_triplets",
        "a margin loss that is zero for whole batches, sparse gradients",
    ),
    Healthy(
        "robust_trainer",
        "batches with NaN are found and left out, errors are caught",
    ),
    Healthy(
        "gradnorm_weights",
        "task weights that learn from the norms of gradients",
        information=("GS504",),
    ),
    Healthy(
        "discriminative_finetune",
        "layers thawed epoch by epoch, groups whose rate is zero",
        information=("GS317",),
    ),
    Healthy(
        "crf_tagger",
        "infinities as masks in sums of exponentials",
    ),
    Healthy(
        "private_per_sample",
        "gradients made by vmap, clipped and written by hand",
    ),
    Healthy(
        "lottery_rewind",
        "pruned weights, and weights that are set back",
    ),
    Healthy(
        "master_weights_half",
        "float32 copies are stepped, not the parameters of the model",
    ),
    Healthy(
        "centred_self_distillation",
        "grad = None for the last layer before steps of epoch 0; frozen scale; teacher "
        "without gradients",
    ),
    Healthy(
        "implicit_equilibrium",
        "fixed point under no_grad, clone().detach(), a tensor hook that replaces the gradient",
        information=("GS504",),
    ),
    Healthy(
        "free_bits_sentences",
        "clamp(min) with zero gradient",
    ),
    Healthy(
        "generated_weights",
        "parameters of Target in no optimizer, never get a gradient",
    ),
    Healthy(
        "images_without_objects",
        "box head has zero gradient in some steps (empty selection)",
    ),
    Healthy(
        "layerwise_goodness",
        "nothing flows between layers, an optimizer per layer",
    ),
    Healthy(
        "policy_through_frozen_model",
        "requires_grad switched off and on in every cycle, backward through a frozen model",
    ),
    Healthy(
        "slow_and_fast_weights",
        "p.data written after the step",
    ),
    Healthy(
        "stochastic_depth",
        "grads None for skipped blocks",
    ),
    Healthy(
        "unit_norm_dictionary",
        "gradient edited, weights and optimizer state written under no_grad, scatter/topk",
        information=("GS317",),
    ),
    Healthy(
        "optimizer_through_data",
        "an optimizer whose step writes through .data, which counts no version",
    ),
    Healthy(
        "loops_inside_a_step",
        "a jitter that is added until it suffices, a penalty added up by layer; a parameter "
        "without elements",
    ),
    Healthy(
        "column_less_row_averaged",
        "[n, 1] less [n], and nothing but the mean of it: the gradient is that of the pairs",
    ),
    Healthy(
        "router_estimator",
        "a Function that sends the gradient of one input to another, which its forward ignores",
    ),
    Healthy(
        "amp_accumulate",
        "fp16 autocast with a GradScaler that starts high: 6 steps are skipped because of inf"
        " (wanted); clip after unscale_; accumulation with a leftover group divided by its "
        "own size",
        information=("GS103",),
    ),
    Healthy(
        "byol_sensors",
        "target network deep-copied, frozen, moved through `.data`, forward under no_grad, "
        "detach; later a linear probe on a frozen encoder; biases before batch norm get "
        "nearly zero gradients",
    ),
    Healthy(
        "distill_compact",
        "teacher trained, then eval + frozen + inference_mode; weights per sample under "
        "no_grad; the hint term is annealed to 0, so the hint's layer has zero gradients in "
        "the second half",
    ),
    Healthy(
        "lora_prompts",
        "frozen base, tied weights, `up` starts at zero (so `down` has zero gradient in step "
        "1), custom straight-through Function, non-reentrant checkpointing, padding_idx and "
        "ignore_index",
    ),
    Healthy(
        "moe_router",
        "experts without tokens have no gradient in some steps (172 None in all), index_add, "
        "detached usage",
    ),
    Healthy(
        "sac_reacher",
        "targets under no_grad, critic frozen while the actor is updated and thawed again, "
        "detached alpha and log-prob, lerp_ of a frozen copy, delayed updates",
    ),
    Healthy(
        "stylegan_lazy",
        "R1 penalty and path regularisation only every n steps with create_graph, two "
        "backward calls before one step, requires_grad toggles, averaged copy, noise strength"
        " that starts at zero",
    ),
    Healthy(
        "tbptt_words",
        "state detached between chunks; learned initial state that gets a gradient only in "
        "the first chunk of a pass (48 None); tied weights; strong clipping",
    ),
    Healthy(
        "step_inside_autocast",
        "two networks step inside of a region of autocast that is left after each batch",
    ),
    Healthy(
        "confident_pseudo_labels",
        "no sample above the threshold in the first steps, so that the loss is 0; averaged weights",
    ),
    Healthy(
        "corrected_temporal_difference",
        "two-time-scale update, .grad assigned by hand under no_grad",
    ),
    Healthy(
        "learned_inner_rates",
        "meta-learning whose inner loop has learned rates",
    ),
    Healthy(
        "memory_light_blocks",
        "own recomputation in backward that restores the random state",
    ),
    Healthy(
        "memory_projection",
        "the gradient is projected against that of a memory, and written back to .grad",
    ),
    Healthy(
        "supermask_net",
        "frozen random weights, straight-through scores",
    ),
    Healthy(
        "fomaml_functional",
        "first-order meta-learning: detached fast weights, gradients added to p.grad by hand",
    ),
    Healthy(
        "lbfgs_texture",
        "L-BFGS over the pixels of an image, frozen features, clamped in place under no_grad",
    ),
    Healthy(
        "lora_distill",
        "low-rank adapters on a copy of a trained net, under checkpoints, distilled with "
        "accumulation",
    ),
    Healthy(
        "pcgrad_robot",
        "gradients of three tasks are projected on one another and written to p.grad",
    ),
    Healthy(
        "vq_ema",
        "straight-through quantiser, codebook in buffers averaged by hand, detached "
        "commitment target",
    ),
    Healthy(
        "amp_accumulation_segmenter",
        "float16 with a scaler, accumulation, unscaled before clipping; the schedule waits "
        "where a step is skipped",
    ),
    Healthy(
        "domain_adversarial",
        "gradient reversal whose strength begins at 0",
    ),
    Healthy(
        "lora_distillation",
        "adapters distilled from a frozen teacher, then merged by hand",
    ),
    Healthy(
        "sam_classifier",
        "two backward passes a step, batch norm with momentum 0 in the second",
    ),
    Healthy(
        "vqvae_ema",
        "vector quantiser with averaged codes in buffers; losses kept detached",
    ),
    Healthy(
        "chain_dqn",
        "frozen copy averaged by lerp_, targets under no_grad",
    ),
    Healthy(
        "domain_shift",
        "gradient reversal with a ramp; the domains share a batch",
    ),
    Healthy(
        "low_rank_tuning",
        "adapters injected into a frozen net, the second factor begins at zero",
    ),
    Healthy(
        "sharpness_min",
        "weights climb and are put back by hand between two backward passes",
    ),
    Healthy(
        "vq_codec",
        "quantiser on latents of a convolution, codes averaged under no_grad",
    ),
    Healthy(
        "amp_student",
        "distillation under float16 with a scaler, accumulation and clipping",
    ),
    Healthy(
        "dann_digits",
        "gradient reversal of strength 0 in the first steps; source and target in two calls",
    ),
    Healthy(
        "fomaml_sine",
        "gradients taken at copies of the weights are written to p.grad by hand",
    ),
    Healthy(
        "sac_point_mass",
        "critics frozen in the actor step, own optimizer for the temperature, averaged targets",
    ),
    Healthy(
        "vq_codes",
        "straight-through quantiser of vectors, detached commitment target",
    ),
)


def marked_lines(path: Path, arrow: Literal["<-", "<~"]) -> list[int]:
    """The numbers of the lines of one file that carry a marker."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marker = re.compile(rf"# {arrow} GS\d\d\d\b")
    return [number for number, line in enumerate(lines, 1) if marker.search(line)]


def guilty_line(path: Path) -> int:
    """The line of the marker `# <- GSnnn` in a file; 0 where it has none."""
    found = marked_lines(path, "<-")
    if len(found) > 1:
        raise ValueError(f"{path} has {len(found)} guilty lines")
    return found[0] if found else 0


def guilty_place(case: Case) -> tuple[str, int]:
    """The file name and the line that a finding about this case must name."""
    if case.file:
        return case.file, case.line
    for path in case.files:
        if line := guilty_line(path):
            return str(path), line
    raise ValueError(f"{case.name} has no marker")


def right_places(case: Case) -> set[tuple[str, int]]:
    """Every place that counts as right: the guilty one and those marked as equally right."""
    places = {guilty_place(case)}
    for path in case.files:
        places.update((str(path), line) for line in marked_lines(path, "<~"))
    return places
