"""What lanes and slices are, decided once: roles, kinds, runtimes of vendors, lanes of an AIU."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, file, for_files, needs, traces
from tests.events import Event, complete, index_of, metadata, write_events
from tests.json_tables import command_json
from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.kineto import GROUPS, RUNTIME, SliceKind, slice_kind, vendor_of
from tracelane.core.index.flex import WORK as FLEX_WORK
from tracelane.core.index.format import LaneRole, RowKind
from tracelane.core.query.chain import chain_of
from tracelane.core.query.lanes import slice_kind_codes
from tracelane.core.sql.query import run_query
from tracelane.core.tables.device.breakdown import device_table
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.device.launches import analyse_launches
from tracelane.core.tables.device.memory import copies
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.explain.explain import explain
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.cached import cache_file
from tracelane.core.tables.frame.frame_columns import timed_work, work_of
from tracelane.core.tables.frame.kinds import (
    DEFAULT_KINDS,
    KERNEL_TYPES,
    KINDS,
    UNKNOWN,
    KernelKind,
    KindTable,
    kernel_kinds,
    kernel_types,
)
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.ops import ops, sort_column
from tracelane.core.tables.host.range_table import range_table
from tracelane.core.trace import Lane, Trace, open_trace, trace_of
from tracelane.core.trace.devices import devices
from tracelane.core.trace.lane_order import drawn_device_lanes
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.config import read_config
from tracelane.tui.text.summary import trace_info

NAMES = [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)", "collective", "communication"),
    ("void deep_ep::intranode::dispatch<8>(int4*)", "collective", "communication"),
    ("mori::moe::EpDispatchIntraNodeKernel", "collective", "communication"),
    ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", "collective", "communication"),
    ("hcom_allReduce__000_0", "collective", "communication"),
    ("sm80_xmma_dgrad_implicit_gemm_f16", "convolution", "compute"),
    ("cutlass_tensorop_s1688dgrad_optimized_tf32", "convolution", "compute"),
    ("cask_cudnn::computeWgradSplitKOffsetsKernel(Params)", "convolution", "compute"),
    ("cask_cudnn::computeWgradBOffsetsKernel(Params)", "convolution", "compute"),
    ("cudnn::cnn::computeOffsetsKernel(Params)", "convolution", "compute"),
    ("BiasAddGrad", "unknown", "compute"),
    ("SigmoidGrad", "elementwise", "compute"),
    ("aclnnMm_MatMulCommon_MatMulV2", "gemm", "compute"),
    ("aclnnMm_MatMulCommon_MemSet", "fill", "memory"),
    ("aclnnMm_TransData_TransData", "elementwise", "compute"),
    ("aclnnReduceSum_CastAiCpu_Cast", "elementwise", "compute"),
    ("aclnnDivs_RealDivAiCore_RealDiv", "elementwise", "compute"),
    ("multimem_all_reduce_kernel", "collective", "communication"),
    ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>()", "collective", "communication"),
    ("__amd_rocclr_copyBuffer.kd", "copy", "memory"),
    ("__amd_rocclr_fillBufferAligned.kd", "fill", "memory"),
    ("CopyHostToDevice", "copy", "memory"),
    ("Memcpy HtoD (Pinned -> Device)", "copy", "memory"),
    ("Stream Wait Event", "sync", "sync"),
    ("ampere_sgemm_32x32_sliced1x4_tn", "gemm", "compute"),
    ("nvjet_tst_128x64_64x8_1x2_h_bz_TNT", "gemm", "compute"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_MT32x32x256", "gemm", "compute"),
    ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>", "attention", "compute"),
    ("sm80_xmma_fprop_implicit_gemm_tf32f32", "convolution", "compute"),
    ("void at::native::batch_norm_transform_input<float>", "norm", "compute"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>", "elementwise", "compute"),
    ("void at::native::reduce_kernel<512, 1>", "reduction", "compute"),
    ("fused_moe_kernel", "moe", "compute"),
    ("triton_poi_fused_add_relu_0", "triton", "compute"),
    ("/tmp/x/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir", "spyre", "compute"),
    ("cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)", "convolution", "compute"),
    ("SubTensorOpWithScalar1d", "elementwise", "compute"),
    ("_combined_routing_compute", "moe", "compute"),
    ("event_wait", "sync", "sync"),
    ("addmm_MatMul Cmpt Exec", "gemm", "compute"),
    ("relu_6 Cmpt Exec", "elementwise", "compute"),
    ("mean Cmpt Exec", "reduction", "compute"),
    ("max_pool2d_with_indices Cmpt Exec", "reduction", "compute"),
    ("void at::native::(anonymous namespace)::max_pool_backward_nhwc<float, float>", "reduction", "compute"),
    ("void cudnn::pooling_fw_4d_kernel<float>", "reduction", "compute"),
    ("mloPoolingG.kd", "reduction", "compute"),
    ("layer_norm_3 Cmpt Exec", "norm", "compute"),
    ("input_1 DmaI", "copy", "memory"),
    ("SenRdmaSend_0 [sync=AllReduce_all_reduce_4_s3_r0x3_2]", "collective", "communication"),
    ("k17", UNKNOWN, "compute"),
]
LIBRARIES = {
    # Names as libraries give them, by the kind that they are.
    "gemm": [
        "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8",
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, 128, 16, 4, 4, false, cublasGemvParamsEx<int> >",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float>",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u>",
        "void marlin::Marlin<256, 1, 8, 8, 4, 8>(int4 const*, int4 const*)",
        "void gptq_marlin_repack_kernel<2, 256, 4, false>",
        "void kgemm_4bit_inference_naive<__nv_bfloat16, 128, 16>(int, int, int)",
        "_w8a8_block_fp8_matmul",
        "void wvSplitK_hf_sml_<__half, 64, 2, 16, 8, 2, 1>",
        "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3>",
        "_ZN5aiter24bf16gemm_fp32bf16_tn_96x64_splitk_cleanE",
        "gemm_kernel",
    ],
    "attention": [
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int> > >",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u>",
        "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u>",
        "void vllm::paged_attention_v2_reduce_kernel<__half>",
        "_fwd_grouped_kernel_stage1",
        "fmhaSm100aKernel_QkvE4m3OBfloat16HQk192HV128SeparateQkvCausalVarSeqQ128Kv128",
        "_ZN5aiter22mla_a16w16_qh16_m16x4_n16x1E",
        "_ZN5aiter33pa_bf16_pertokenFp8_gqa8_2tg_4wE",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_128x128x128",
        "bwd_kernel_dk_dv",
    ],
    "moe": [
        "void vllm::moe::moe_align_block_size_kernel<int>",
        "_ZN5aiter47fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_32x256E",
        "ck_tile::kentry<256, 1, ck_tile::MoeSortingKernel>",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
        "void tensorrt_llm::kernels::cutlass_kernels::finalizeMoeRoutingKernel<float>",
        "aiter::biased_grouped_topk_kernel",
    ],
    "convolution": [
        "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8",
        "miopenSp3AsmConv_v21_1_3_gfx9_fp32_f2x3_stride1",
        "void cudnn::cnn::dgrad2d_alg1_1<float, 0, 6, 7, 5, 4, 5, false, true>",
        "void fft2d_r2c_32x32<float, false, 5u, true>(float2*, cudnn::reduced_divisor)",
        "void at::native::im2col_kernel<float>",
    ],
    "norm": [
        "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>",
        "MIOpenBatchNormBwdSpatialFinalDScaleDBias",
        "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<float>",
        "void cuApplyLayerNorm<c10::BFloat16, float>",
    ],
    "reduction": [
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>",
        "void at::native::bitonicSortKVInPlace<2, -1, 16, 16>",
        "void rocprim::detail::onesweep_iteration_kernel<rocprim::default_config>",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps> >",
    ],
    "elementwise": [
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>",
        "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>",
        "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<float>",
        "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16>",
        "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>",
        "void transformer_engine::(anonymous namespace)::cast_transpose_optimized_kernel",
        "at::native::xpu::VectorizedElementwiseKernel<4, at::native::xpu::AddFunctor>",
        "create_flashinfer_kv_indices_triton",
        "split_embedding_backward_codegen_find_long_segments(fbgemm_gpu::PackedTensorAccessor)",
    ],
    "optimizer": [
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float> >",
        "void kOptimizerStatic8bit2StateBlockwise<float>",
    ],
    "collective": [
        "ncclSymDevKernel_AllReduce_AGxLLMC_R",
        "rcclGenericKernel<4, 0>",
        "void mscclpp::allreduce7<__half>",
        "_ZN7deep_ep9internode8dispatchILb0ELi8EEEvv",
        "void mori::moe::EpCombineInterNodeV1Kernel<float>",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<float>",
        "hcom_allGather__123_0_1",
    ],
    "copy": ["zeCommandListAppendMemoryCopy(M2D)", "Memcpy PtoP (Device -> Device)"],
    "fill": ["zeCommandListAppendMemoryFill", "fillBufferAligned2D"],
    "sync": ["Event Sync", "Stream Wait Event"],
    UNKNOWN: ["my_kernel", "merge", "pe_exe", "void user::do_work<float>", "memorize", "convert_step"],
}


@pytest.mark.parametrize(("name", "kind", "type"), NAMES)
def test_kind_of_a_name(name: str, kind: str, type: str) -> None:
    """Libraries' names have their kind and type; a name nobody knows is said to be unknown."""
    row = DEFAULT_KINDS.kind_of(name, "kernel")
    assert (row.name, row.type) == (kind, type)


@pytest.mark.parametrize("kind", LIBRARIES)
def test_names_of_libraries(kind: str) -> None:
    """Names of many libraries, mangled or not, are of their kind; what nobody knows stays unknown."""
    assert {name: DEFAULT_KINDS.kind_of(name, "kernel").name for name in LIBRARIES[kind]} == dict.fromkeys(
        LIBRARIES[kind], kind
    )


def test_categories_go_before_names() -> None:
    """A copy is a copy and a synchronisation no work, whatever they are called."""
    assert DEFAULT_KINDS.kind_of("gemm", "gpu_memcpy").name == "copy"
    assert DEFAULT_KINDS.kind_of("gemm", "gpu_memset").name == "fill"
    assert DEFAULT_KINDS.kind_of("gemm", "cuda_sync").type == "sync"


def test_a_user_puts_patterns_before_the_table() -> None:
    """A user's pattern decides first; a known kind keeps its type, a new one is compute."""
    table = DEFAULT_KINDS.with_patterns(
        [("collective", "^my_ring_"), ("fft", "fft|cufft"), ("memory", "^move_")]
    )
    assert table.kind_of("my_ring_gemm").type == "communication"
    assert (table.kind_of("cufft_gemm").name, table.kind_of("cufft_gemm").type) == ("fft", "compute")
    assert table.kind_of("move_all").type == "memory"
    assert table.kind_of("gemm").name == "gemm"
    with pytest.raises(UsageError, match="kernel kind 'bad'"):
        DEFAULT_KINDS.with_patterns([("bad", "(")])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's settings lie."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "tracelane" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def _kernel_file(folder: Path) -> str:
    """Write a trace of three kernels: one of a library, two that only settings can know."""
    names = {"ampere_sgemm_128x64_tn": 50, "my_ring_step": 30, "zz_thing": 20}
    events = [
        complete(100 * at, dur, name, "kernel", pid=0, tid=7, args={"stream": 7})
        for at, (name, dur) in enumerate(names.items())
    ]
    return str(write_events(folder / "kernels.json", events))


def _rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in command_json(capsys, *arguments)["kernels"]}


def test_kinds_by_the_command(tmp_path: Path, settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kernel has its kind, --by kind sums them up, and patterns of the settings decide first."""
    path = _kernel_file(tmp_path)
    rows = _rows(capsys, "kernels", path)
    assert {name: (row["type"], row["kind"]) for name, row in rows.items()} == {
        "ampere_sgemm_128x64_tn": ("compute", "gemm"),
        "my_ring_step": ("compute", "unknown"),
        "zz_thing": ("compute", "unknown"),
    }
    rows = _rows(capsys, "kernels", path, "--by", "kind")
    assert {name: (row["count"], row["total_ns"]) for name, row in rows.items()} == {
        "gemm": (1, 50_000),
        "unknown": (2, 50_000),
    }
    settings.write_text(
        '[kernel-kinds]\ncollective = "^my_ring_"\nfft = ["cufft", "^zz_"]\n', encoding="utf-8"
    )
    rows = _rows(capsys, "kernels", path)
    assert (rows["my_ring_step"]["type"], rows["my_ring_step"]["kind"]) == ("communication", "collective")
    assert (rows["zz_thing"]["type"], rows["zz_thing"]["kind"]) == ("compute", "fft")
    (device,) = command_json(capsys, "breakdown", path)["devices"]
    assert device["comm_ns"] == 30_000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[kernel-kinds]\ngemm = "("', "kernel-kinds.gemm"),
        ("[kernel-kinds]\ngemm = 3", "kernel-kinds.gemm must be a pattern"),
        ('[kernel-kinds]\ngemm = ["a", 1]', "kernel-kinds.gemm must be a pattern"),
        ('[kernel-kinds]\ngemm = ""', "kernel-kinds.gemm must be a pattern"),
        ("kernel-kinds = 7", "kernel-kinds"),
    ],
)
def test_wrong_settings(
    text: str, complaint: str, tmp_path: Path, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Patterns that are none end a command in a line that names them; the viewer opens and says so."""
    settings.write_text(text, encoding="utf-8")
    assert main(["kernels", _kernel_file(tmp_path)]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
    assert any(complaint in line for line in read_config(settings).complaints)


def test_findings_follow_the_settings(tmp_path: Path, settings: Path) -> None:
    """Findings stored beside the index are not those of other patterns."""
    trace = open_trace([_kernel_file(tmp_path)], index_dir=tmp_path / "index")
    before = cache_file(Scope(trace), "findings")
    settings.write_text('[kernel-kinds]\ncollective = "^my_ring_"\n', encoding="utf-8")
    assert cache_file(Scope(trace), "findings") != before
    trace.close()


def test_each_kind_stands_once() -> None:
    """No two rows of the table have one name."""
    assert len({row.name for row in KINDS}) == len(KINDS)


@needs(CORPUS)
def test_allocations_of_an_aiu_are_no_work(corpus_cache: Path) -> None:
    """On AIU lanes `Memset (Device)` is left out of work and busy time; kernels are all there."""
    path = next(CORPUS.glob("aiu/spyre_torch_profiler/jamie_mlp__upstream*"))
    trace = open_trace([path], index_dir=corpus_cache)
    work = work_of(Scope(trace))
    whole = work_of(Scope(trace, allocations=True))
    index = trace.indexes[0]
    left_out = np.setdiff1d(whole.position, work.position)
    assert set(index.strings(index.column("slices.name")[left_out])) == {"Memset (Device)"}
    (device,) = device_table(timed_work(Scope(trace)))
    assert device["memory_ns"] == 0
    assert {int(stream.dur.sum()) for stream in work.by("stream")} == {22_795_895}
    trace.close()


def test_memsets_of_other_devices_are_work(tmp_path: Path) -> None:
    """On a GPU a Memset (Device) sets memory, and takes time."""
    events = [complete(0, 10, "Memset (Device)", "gpu_memset", pid=0)]
    work = work_of(Scope(Trace([index_of(events, tmp_path)])))
    assert work.dur.tolist() == [10_000]


JAX = Path(__file__).parent.parent / "samples" / "jax.trace.json.gz"
DEVICE, HOST, TELEMETRY, PROFILER = LaneRole.DEVICE, LaneRole.HOST, LaneRole.TELEMETRY, LaneRole.PROFILER


def slice_of(category: str | None, pid: int = 1) -> Event:
    """Return a slice of a category, or without one."""
    event = complete(10, 5, pid=pid)
    return {key: value for key, value in (event | {"cat": category}).items() if value is not None}


@pytest.mark.parametrize(
    ("categories", "labels", "process", "role"),
    [
        (["kernel"], "", "", DEVICE),
        (["kernel", "cpu_op"], "", "python", DEVICE),
        (["gpu_user_annotation"], "", "", DEVICE),
        (["cuda_sync"], "GPU 0", "", DEVICE),
        (["python_function"], "GPU 0", "python3", HOST),
        (["cpu_op", "python_function"], "AIU 3", "", HOST),
        (["mtia_runtime"], "MTIA 17", "MTIA 17", HOST),
        (["overhead"], "GPU 0", "", PROFILER),
        (["overhead", "cuda_runtime"], "", "", HOST),
        (["privateuse1_driver"], "AIU 0", "python", DEVICE),
        (["privateuse1_driver"], "CPU", "python", HOST),
        (["musa_runtime"], "MUSA 1", "", HOST),
        ([None], "GPU 2", "", DEVICE),
        ([None], "", "GPU2", DEVICE),
        ([None], "", "gpu:11", DEVICE),
        ([None], "", "/device:TPU:3", LaneRole.DERIVED),  # a lane that is not called as its work is
        ([None], "", "/host:CPU", HOST),
        (["unheard of"], "XPU 1", "", DEVICE),
        ([None], "CPU", "", HOST),
        ([None], "", "GPU Process", HOST),  # of a browser
        ([None], "", "GPU 0 monitor", HOST),
        ([None], "", "device", HOST),
        ([None], "huge image - Google Search", "Renderer", HOST),
        (["devtools.timeline"], "", "GPU Process", HOST),
    ],
)
def test_rules(
    categories: list[str | None], labels: str, process: str, role: LaneRole, tmp_path: Path
) -> None:
    """Categories decide before labels, labels before names, and a name must be a device and its number."""
    events = [slice_of(category) for category in categories]
    events += [metadata("process_labels", labels=labels)] if labels else []
    events += [metadata("process_name", name=process)] if process else []
    trace = trace_of("t.json", index_of(events, tmp_path))
    assert [lane.role for lane in trace.lanes] == [role]


def test_a_vendors_label_needs_its_runtime(tmp_path: Path) -> None:
    """ "MUSA 1" names a device in a file that has calls of MUSA's runtime, and in no other."""
    unknown = [slice_of(None, pid=0), metadata("process_labels", 0, labels="MUSA 1")]
    alone = trace_of("a.json", index_of(unknown, tmp_path / "a"))
    called = trace_of("b.json", index_of([*unknown, slice_of("musa_runtime", pid=9)], tmp_path / "b"))
    assert {lane.pid: lane.role for lane in alone.lanes} == {"0": HOST}
    assert {lane.pid: lane.role for lane in called.lanes} == {"0": DEVICE, "9": HOST}


def plain_role(trace: Trace, number: int, categories: set[str], names: set[str]) -> LaneRole:
    """Return the role of a lane the slow way, from the categories and names of all its slices."""
    lane = trace.lanes[number]
    process = lane.process
    if lane.samples and not lane.slices:
        return TELEMETRY
    if process.pid in ('"Spans"', '"Traces"') and not process.name:
        return PROFILER
    if not any(trace.categories(lane.source)) and any(FLEX_WORK.search(name) for name in names):
        return DEVICE
    if categories & GROUPS["device"]:
        return DEVICE
    if process.name.startswith("/device:GPU:"):  # of XLA, where nothing has a category
        return DEVICE if lane.name.startswith("Stream #") else HOST
    host = [category in RUNTIME or category in GROUPS["op"] | GROUPS["python"] for category in categories]
    own = [category in {"overhead", "Trace"} for category in categories]
    if categories and all(own):
        return PROFILER
    if not categories or all(one or other for one, other in zip(host, own)):
        return HOST
    words = process.labels.split() or [
        process.name.rstrip("0123456789") if process.name[-1:].isdigit() else ""
    ]
    return DEVICE if words[0].rstrip(":#") in ("GPU", "AIU", "MTIA") else HOST


TRACES = traces("*/*.json*")


@for_files("path", TRACES)
def test_everybody_says_the_same_of_every_lane(path: str, corpus_cache: Path) -> None:
    """On real traces the roles are those of the plain rule, and tables, the viewer's device lanes and JSON
    agree on them.
    """
    try:
        trace = open_trace(file(path), index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    index = trace.indexes[0]
    categories: list[set[str]] = [set() for _ in trace.lanes]
    names: list[set[str]] = [set() for _ in trace.lanes]
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        own = slice(int(row["first"]), int(row["first"] + row["count"]))
        present = set(index.column("slices.category")[own].tolist())
        categories[int(row["lane"])] |= {index.categories[number] for number in present}
        if not any(index.categories):
            names[int(row["lane"])] |= set(index.strings(set(index.column("slices.name")[own].tolist())))
    roles = [lane.role for lane in trace.lanes]
    assert roles == [plain_role(trace, at, *of) for at, of in enumerate(zip(categories, names))]

    ran = {at for at, role in enumerate(roles) if role is DEVICE and trace.lanes[at].slices}
    assert {at for device in devices(trace) for at in device.lanes} == ran
    assert {at for at in drawn_device_lanes(trace) if roles[at] is not TELEMETRY} == {
        at for at, role in enumerate(roles) if role is DEVICE
    }
    in_json = [lane["role"] for process in trace_info(trace)["processes"] for lane in process["lanes"]]
    in_order = [roles[at] for process in trace.processes for at in process.lanes]
    assert in_json == [role.name.lower() for role in in_order]


@pytest.mark.slow
@for_files("path", ["gpu/hta_a100_resnet_ddp_nccl.json.gz", "aiu/mlp_trace.json"])
def test_kinds_of_slices(path: str, corpus_cache: Path) -> None:
    """Each slice has the kind that its category and name say, in SQL as in the viewer's colours."""
    trace = open_trace(file(path), index_dir=corpus_cache)
    index = trace.indexes[0]
    numbers = [index.column(f"slices.{key}") for key in ("category", "name")]
    kinds = [list(SliceKind)[code] for code in slice_kind_codes(index, *numbers).tolist()]
    names = index.strings(index.column("slices.name"))
    categories = [index.categories[number] for number in index.column("slices.category").tolist()]
    assert kinds == [slice_kind(category, name) for category, name in zip(categories, names)]
    query = "select slice_kind, count(*) from slices group by 1"
    with run_query(trace, query, "sqlite") as answer:
        assert dict(answer.rows) == {kind: kinds.count(kind) for kind in kinds}


@needs(CORPUS)
def test_a_device_found_by_its_processs_name_has_kernels(tmp_path: Path) -> None:
    """rocprof's exports have neither categories nor labels: what ran on "GPU2" is device work."""
    trace = open_trace(CORPUS / "verdicts" / "rpd_matmul.json.gz", index_dir=tmp_path)
    assert [(device.label, device.number) for device in devices(trace)] == [("GPU2", 2)]


def test_a_trace_of_jax_has_device_work(tmp_path: Path) -> None:
    """XLA names the process of a device "/device:GPU:0": its slices are kernels, which may overlap on an
    H100.
    """
    trace = open_trace(JAX, index_dir=tmp_path)
    assert [(device.label, device.number) for device in devices(trace)] == [("GPU 0", 0)]
    rows = {row["name"]: (row["count"], row["total_ns"]) for row in kernels(Scope(trace)).rows()}
    assert rows["wrapped_tanh"] == (5, 58_306) and len(rows) == 4
    assert not list(analyse_doctor(Scope(trace))["doctor"].rows())


def test_of_a_device_of_xla_the_streams_are_its_own(tmp_path: Path) -> None:
    """Lanes that hold the same work by step or module are none of the device's: nothing counts twice."""
    names = {1: "Stream #14(Compute)", 2: "XLA Modules", 3: "Steps", 4: "XLA Ops"}
    events = [{k: v for k, v in complete(10, 5, tid=tid).items() if k != "cat"} for tid in names]
    events += [metadata("thread_name", 1, tid, name=text) for tid, text in names.items()]
    events.append(metadata("process_name", name="/device:GPU:0"))
    trace = trace_of("t.json", index_of(events, tmp_path))
    assert {lane.title for lane in trace.lanes if lane.role == DEVICE} == {names[1]}
    assert [row["count"] for row in kernels(Scope(trace)).rows()] == [1]


def test_json_has_the_role(tmp_path: Path) -> None:
    """`info --json` says the role of each lane in words."""
    trace = trace_of("t.json", index_of([slice_of("kernel", pid=7)], tmp_path))
    (lane,) = json.loads(json.dumps(trace_info(trace)))["processes"][0]["lanes"]
    assert lane["role"] == "device"


VENDORS = ("npu", "musa", "sdaa", "my_own", "TOPS")


def program(category: str, label: str = "") -> list[Event]:
    """Four ops that each launch a kernel by correlation, and a wait for a device that is long done."""
    events = [metadata("process_labels", 0, labels=label)] if label else []
    for n in range(1, 5):
        at, args = n * 1000, {"correlation": n, "External id": 70 + n}
        events += [
            complete(at, 100, "aten::mm", "cpu_op", pid=9, tid=1, args={"External id": 70 + n}),
            complete(at + 10, 20, "xLaunchKernel", category, pid=9, tid=1, args=args),
            complete(at + 50, 30, "k", "kernel", pid=0, tid=3, args={**args, "stream": 3, "device": 0}),
        ]
    events.append(complete(5000, 900, "xStreamSynchronize", category, pid=9, tid=1))
    return events


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("kind", ["runtime", "driver"])
def test_calls_of_any_vendor_launch(vendor: str, kind: str, tmp_path: Path) -> None:
    """Launches, ops, chains and findings hold the calls of a runtime by the ending of their category."""
    trace = Trace([index_of(program(f"{vendor}_{kind}"), tmp_path)])
    table = analyse_launches(Scope(trace)).main
    assert list(table.data["name"]) == ["xLaunchKernel"] and table.totals["without_launch"] == 0
    assert (int(table.data["count"][0]), int(table.data["delay_ns"][0])) == (4, 4 * 20_000)
    rows = {row["name"]: row for row in ops(Scope(trace)).rows()}
    assert rows["xLaunchKernel"]["calls"] == 4
    assert rows["aten::mm"]["device_total_ns"] == 4 * 30_000
    kernel = trace.indexes[0].strings(trace.indexes[0].column("slices.name")).index("k")
    assert [link.role for link in chain_of(trace.indexes[0], kernel)][:3] == ["kernel", "launch", "op"]
    assert "sync" in [finding.rule for finding in findings(Scope(trace)).findings]


@pytest.mark.parametrize(
    ("category", "label", "title", "word"),
    [
        ("musa_runtime", "MUSA 1", "MUSA 1", "MUSA"),
        ("npu_runtime", "NPU 0", "NPU 0", "NPU"),
        ("npu_runtime", "GPU 0", "GPU 0", "NPU"),
        ("sdaa_driver", "", "device", "SDAA"),
        ("cuda_runtime", "MUSA 1", "device", "CUDA"),
        ("cuda_driver", "GPU 3", "GPU 3", "CUDA"),
    ],
)
def test_devices_are_called_as_their_runtime_tells(
    category: str, label: str, title: str, word: str, tmp_path: Path
) -> None:
    """A device has its process's label where its vendor's runtime is in the file, and the vendor's word."""
    (device,) = devices(Trace([index_of(program(category, label), tmp_path)]))
    assert (device.label, device.word) == (title, word)


@pytest.mark.parametrize(
    "category", ["kernel", "cpu_op", "runtime", "_runtime", "overhead", "privateuse1_driver", "driver", "", 7]
)
def test_other_categories_are_no_vendors_runtime(category: object) -> None:
    """Only what stands before the ending makes a vendor; the driver of AIUs stands on their device."""
    assert (category in RUNTIME) == (category == "runtime")


def test_vendors_by_category() -> None:
    """The vendor is all that stands before the ending."""
    assert [vendor_of(text) for text in ("npu_runtime", "my_own_driver", "gpu_memcpy", "x_Runtime")] == [
        "npu",
        "my_own",
        "",
        "x",
    ]


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("self_npu_time_total", "self_device_ns"),
        ("musa_time_total", "device_total_ns"),
        ("cuda_time", "device_avg_ns"),
        ("-xpu_memory_usage", "-device_mem"),
        ("self_cpu_time_total", "self_cpu_ns"),
        ("cpu_time", "cpu_avg_ns"),
    ],
)
def test_sort_keys_of_any_device(key: str, column: str) -> None:
    """PyTorch's sort keys name the device by its own word."""
    assert sort_column(key) == column


SAMPLES = sorted(
    [
        *CORPUS.glob("aiu/spyre_torch_profiler/*.json"),
        CORPUS / "aiu/mlp_trace.json",
        *CORPUS.glob("aiu/acelyzer*"),
    ]
)
MEMORY_LANES = {"400": "Memory management:", "401": "Memory management +1"}
SPANS = 2
"""Slices of category Trace in each sample: one of PyTorch's profiler, one of the AIU's."""


def on_device(path: Path) -> dict[str, Counter[str]]:
    """Return the names on each lane of pid 0 as the file has them, by tid."""
    names: dict[str, Counter[str]] = {}
    for event in json.loads(path.read_bytes())["traceEvents"]:
        if event.get("ph") == "X" and event.get("pid") == 0:
            names.setdefault(str(event["tid"]), Counter())[event["name"]] += 1
    return names


def names_of(trace: Trace, lane: Lane) -> Counter[str]:
    names: Counter[str] = Counter()
    for row in trace.rows(lane):
        names.update(trace.name(row, at) for at in range(row.count))
    return names


@for_files("path", SAMPLES)
def test_lanes_of_the_samples(path: Path, corpus_cache: Path) -> None:
    """All of a sample's device lanes stand below the AIU, memory management first, with what the file has."""
    trace = open_trace(path, index_dir=corpus_cache)
    (device,) = [process for process in trace.processes if process.labels == "AIU 0"]
    lanes = [trace.lanes[number] for number in device.lanes]
    expected = on_device(path)
    assert {lane.tid: names_of(trace, lane) for lane in lanes} == expected
    titles = {lane.tid: lane.title for lane in lanes}
    for tid, title in titles.items():
        assert title == MEMORY_LANES.get(tid, title) and (tid in MEMORY_LANES or title.startswith("Stream "))
    assert list(titles) == sorted(titles, key=lambda tid: (tid not in MEMORY_LANES, tid))
    managed = {name for tid in MEMORY_LANES for name in expected.get(tid, ())}
    assert managed <= {"Memset (Device)", "Memory (Release)"}


@for_files("path", SAMPLES)
def test_memory_management_of_the_samples(path: Path, corpus_cache: Path) -> None:
    """A Memset (Device) counts as an allocation, of no bandwidth; its meaning and the release's are told."""
    trace = open_trace(path, index_dir=corpus_cache)
    sets = sum(names["Memset (Device)"] for names in on_device(path).values())
    (row,) = copies(Scope(trace)).rows()
    assert (row["name"], row["count"]) == ("Allocation", sets) and row["bytes"]
    assert row["bandwidth"] is None and row["recorded_mean"] is None
    for name, word in (("Memset (Device)", "allocated"), ("Memory (Release)", "freed")):
        explanation = explain(name, trace, 0)
        assert explanation is not None and word in explanation.line


@for_files("path", SAMPLES)
def test_spans_count_nowhere(path: Path, corpus_cache: Path) -> None:
    """The profiler's spans over the whole recording are in no table's sums, and what is left out is told."""
    trace = open_trace(path, index_dir=corpus_cache)
    table = range_table(Scope(trace))
    assert "Trace" not in [row["category"] for row in table.rows()]
    slices = sum(lane.slices for lane in trace.lanes)
    assert dict(table.totals)["slices"] == slices - SPANS
    assert [note for note in table.notes if f"{SPANS} slices" in note]
    assert not [row for row in kernels(Scope(trace)).rows() if "rofiler" in str(row["name"])]


def copy(tid: int, ts: float, kind: str) -> dict[str, Any]:
    args = {"call": kind, "device": 0, "correlation": 0, "bytes": 4096, "memory bandwidth (GB/s)": "N/A"}
    return complete(ts, 10, f"Memcpy ({kind})", "gpu_memcpy", pid=0, tid=tid, args=args)


def test_copies_of_every_kind(tmp_path: Path) -> None:
    """Copies are told apart by kind; a lane called " " is named for the one whose overlaps it holds."""
    lanes = {100: "Memcpy (HtoD):", 101: " ", 200: "Memcpy (DtoH):", 300: "Memcpy (DtoD):", 305: " ", 7: " "}
    kinds = {100: "HtoD", 101: "HtoD", 200: "DtoH", 300: "DtoD", 305: "PtoP", 7: "PtoP"}
    events = [metadata("process_labels", 0, labels="AIU 0")]
    for number, (tid, name) in enumerate(lanes.items()):
        events.append(metadata("thread_name", 0, tid, name=name))
        events.append(copy(tid, 100 + 5 * number, kinds[tid]))
    events.append(complete(0, 5, "aiuLaunchControlBlocks", "privateuse1_runtime", pid=1, tid=1))
    trace = Trace([index_of(events, tmp_path)])
    titles = {lane.tid: lane.title for lane in trace.lanes}
    assert titles["101"] == "Memcpy (HtoD) +1" and titles["305"] == "Memcpy (DtoD) +5"
    assert titles["100"] == "Memcpy (HtoD):" and titles["7"] == "thread 7"
    rows = {str(row["name"]): row["count"] for row in copies(Scope(trace)).rows()}
    assert rows == {"HtoD": 2, "DtoH": 1, "DtoD": 1, "PtoP": 2}


def test_each_name_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds and types of a column are those of each name and category, however often they are asked for, and
    a name is looked at once.
    """
    texts = ["my_gemm", "softmax", "nobody_knows", "gemm", "my_gemm"]
    categories = ["kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset"]
    index = index_of(
        [complete(at, 1, name, cat) for at, (name, cat) in enumerate(zip(texts, categories))], tmp_path
    )
    columns = index.column("slices.name"), index.column("slices.category")
    rows = [
        DEFAULT_KINDS.kind_of(index.string(name), index.categories[category])
        for name, category in zip(*(column.tolist() for column in columns))
    ]
    fits, seen = KernelKind.fits, Counter[str]()

    def counted(kind: KernelKind, name: str, task: str, small: str) -> bool:
        seen[name] += kind is DEFAULT_KINDS.rows[0]
        return fits(kind, name, task, small)

    monkeypatch.setattr(KernelKind, "fits", counted)
    for _ in range(2):
        names = [DEFAULT_KINDS.names[at] for at in kernel_kinds(index, *columns).tolist()]
        types = [KERNEL_TYPES[at] for at in kernel_types(index, *columns).tolist()]
        assert list(zip(names, types)) == [(row.name, row.type) for row in rows]
    assert seen == {"my_gemm": 1, "softmax": 1, "nobody_knows": 1}


def test_long_names_that_ranks_share_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of a kernel with a name of thousands of characters, as templates make them, is looked for in
    the first rank, and known in every other.
    """
    name = f"void of_{tmp_path.name}<{'Layout<int, float>, ' * 200}>::run()"
    texts: list[str] = []

    def kind_of(table: KindTable, text: str, category: str = "") -> KernelKind:
        texts.append(text)
        return original(table, text, category)

    original = KindTable.kind_of
    monkeypatch.setattr(KindTable, "kind_of", kind_of)
    for rank in range(3):
        index = index_of([complete(0, 9, name, "kernel", pid=0, tid=7)], tmp_path / str(rank))
        columns = (index.column("slices.name")[:1], index.column("slices.category")[:1])
        assert len(kernel_kinds(index, *columns)) == 1
    assert texts == [name]
