"""Device work is told apart by one table of kinds, which a user may put patterns before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tests.json_tables import command_json
from tracelane.core import open_trace
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.breakdown import breakdown, device_table
from tracelane.core.tables.cached import cache_file
from tracelane.core.tables.frame_columns import work_of
from tracelane.core.tables.kinds import DEFAULT_KINDS, KINDS, UNKNOWN
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.config import read_config

NAMES = [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)", "collective", "communication"),
    ("void deep_ep::intranode::dispatch<8>(int4*)", "collective", "communication"),
    ("mori::moe::EpDispatchIntraNodeKernel", "collective", "communication"),
    ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", "collective", "communication"),
    ("hcom_allReduce__000_0", "collective", "communication"),
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
    path = folder / "kernels.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return str(path)


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
    settings.write_text('[kernel-kinds]\ncollective = "^my_ring_"\nfft = ["cufft", "^zz_"]\n')
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
    settings.write_text(text)
    assert main(["kernels", _kernel_file(tmp_path)]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
    assert any(complaint in line for line in read_config(settings).complaints)


def test_findings_follow_the_settings(tmp_path: Path, settings: Path) -> None:
    """Findings stored beside the index are not those of other patterns."""
    trace = open_trace([_kernel_file(tmp_path)], index_dir=tmp_path / "index")
    before = cache_file(Scope(trace), "findings")
    settings.write_text('[kernel-kinds]\ncollective = "^my_ring_"\n')
    assert cache_file(Scope(trace), "findings") != before
    trace.close()


def test_each_kind_stands_once() -> None:
    """No two rows of the table have one name."""
    assert len({row.name for row in KINDS}) == len(KINDS)


@needs_corpus
def test_allocations_of_an_aiu_are_no_work(corpus_cache: Path) -> None:
    """On AIU lanes `Memset (Device)` is left out of work and busy time; kernels are all there."""
    path = next(CORPUS.glob("aiu/spyre_torch_profiler/jamie_mlp__upstream*"))
    trace = open_trace([path], index_dir=corpus_cache)
    work = work_of(Scope(trace))
    whole = work_of(Scope(trace, allocations=True))
    index = trace.indexes[0]
    left_out = np.setdiff1d(whole.position, work.position)
    assert set(index.strings(index.column("slices.name")[left_out])) == {"Memset (Device)"}
    (device,) = device_table(breakdown(Scope(trace)))
    assert device["memory_ns"] == 0
    assert {int(stream.dur.sum()) for stream in work.by("stream")} == {22_795_895}
    trace.close()


def test_memsets_of_other_devices_are_work(tmp_path: Path) -> None:
    """On a GPU a Memset (Device) sets memory, and takes time."""
    events = [complete(0, 10, "Memset (Device)", "gpu_memset", pid=0)]
    work = work_of(Scope(Trace([index_of(events, tmp_path)])))
    assert work.dur.tolist() == [10_000]
