"""Tables: CPU's operators and CUDA's names of them; which operators start kernels on a GPU, and
whether the operators inside of them do."""

# CPU's function -> CUDA's, and where each of its arguments is among those of the CPU's; None: no
# tensor.
EXCHANGED = {
    "aten::native_batch_norm": ("aten::cudnn_batch_norm", [0, 1, 2, 3, 4, None, None, None]),
    "aten::native_batch_norm_backward": ("aten::cudnn_batch_norm_backward",
                                         [1, 0, 2, 3, 4, 5, 6, None, None]),
    "NativeBatchNormBackward0": ("CudnnBatchNormBackward0", None),
}
# The same where attention is fused: (in 16 bits, in 32 bits). "<" marks sizes with heads and
# positions exchanged.
ATTENTION = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": (
        ("aten::_scaled_dot_product_flash_attention", 7, "aten::_flash_attention_forward",
         17), ("aten::_scaled_dot_product_efficient_attention", 8,
               "aten::_efficient_attention_forward", 14), 3),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": ((
        "aten::_scaled_dot_product_flash_attention_backward", 15, "aten::_flash_attention_backward",
        17), ("aten::_scaled_dot_product_efficient_attention_backward", 13,
              "aten::_efficient_attention_backward", 20), 4),
    "ScaledDotProductFlashAttentionForCpuBackward0": (
        ("ScaledDotProductFlashAttentionBackward0", ),
        ("ScaledDotProductEfficientAttentionBackward0", ), 0),
}

# An LSTM of one layer is one call of cuDNN's; arguments and weights of the CPU's among those of
# CUDA's.
RECURRENT = {
    "aten::mkldnn_rnn_layer": ("aten::_cudnn_rnn", [0, 1, 2, 3, 4, None, None, 5, 6, *[None] * 11]),
    "aten::mkldnn_rnn_layer_backward": ("aten::_cudnn_rnn_backward", [
        0, 1, 2, 3, 4, None, 22, 5, 6, 7, 10, 11, 12, *[None] * 9, 22, None
    ]),
    "MkldnnRnnLayerBackward0": ("CudnnRnnBackward0", None),
}
EXCHANGED |= RECURRENT

# Operators that start no kernel: views, memory, questions.
NO_KERNEL = set("""
    empty empty_like empty_strided new_empty new_empty_strided as_strided as_strided_ resize_
    resize_as_ view view_as _unsafe_view _reshape_alias reshape transpose transpose_ t t_
    permute expand expand_as slice select narrow split split_with_sizes chunk unbind unsqueeze
    unsqueeze_ squeeze squeeze_ flatten unflatten detach detach_ alias resolve_conj resolve_neg
    lift_fresh to contiguous item is_nonzero _has_compatible_shallow_copy_type set_ size stride
    movedim swapaxes unfold diagonal real imag view_as_real view_as_complex broadcast_tensors
    meshgrid numpy_T mT result_type is_same_size conj _conj requires_grad_ _version retain_grad
    _fw_primal is_pinned ravel pin_memory record_stream _nested_tensor_from_mask_left_aligned
    promote_types can_cast hstack adjoint matrix_H dropout identity native_channel_shuffle data
    output_nr is_leaf _make_dual moveaxis cudnn_is_acceptable unsafe_chunk unsafe_split
    squeeze_copy unflatten_dense_tensors
""".split())

# Operators whose inner operators are the CPU's own way: on a GPU they are kernels of their own.
WHOLE = set("""
    addmm mm bmm baddbmm addbmm mv addmv dot sum mean index_select native_layer_norm
    native_layer_norm_backward native_group_norm native_group_norm_backward native_batch_norm
    native_batch_norm_backward max_pool2d_with_indices max_pool2d_with_indices_backward
    nll_loss_forward nll_loss_backward embedding_dense_backward cumsum topk sort index_add_
    var_mean arange adaptive_avg_pool2d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
    avg_pool2d avg_pool2d_backward constant_pad_nd cat masked_fill_ index _index_put_impl_
    gather scatter_add_ upsample_nearest2d upsample_nearest2d_backward triu tril
    linalg_vector_norm nonzero roll flip mse_loss_backward convolution_backward logsumexp max
    min index_add index_add_ scatter_ mkldnn_rnn_layer mkldnn_rnn_layer_backward
    value_selecting_reduction_backward slice_backward select_backward
""".split())

# Operators that only call others, which need not start anything.
COMPOSITE = {
    "linear", "matmul", "conv1d", "conv2d", "conv3d", "stack", "unbind", "zeros_like", "clone",
    "pad", "group_norm", "layer_norm", "batch_norm"
}

# Operators whose work is named by the products inside of them.
TRANSPARENT = {"aten::_trilinear", "aten::einsum", "aten::_convolution_double_backward"}


def transparent(function):
    """Operators of the program's own (torch.library) are, too: nobody knows a formula of theirs."""
    return function in TRANSPARENT or "::" in function and not function.startswith("aten::")

# Operators with a kernel of their own beside those of their inner operators.
OWN_TOO = {"silu_", "mul_", "abs", "mse_loss", "binary_cross_entropy", "hardtanh"}


def starts_kernels(range_):
    """Whether any operator inside does."""
    return any(
        r.function.removeprefix("aten::") not in NO_KERNEL if not r.ranges() else
        r.function.removeprefix("aten::") in WHOLE | OWN_TOO or own_kernel(r) or starts_kernels(r)
        for r in range_.operators())


def own_kernel(range_):
    """Whether the operator itself starts one, and not those inside of it."""
    name = range_.function.removeprefix("aten::")
    return name in OWN_TOO or name not in NO_KERNEL | COMPOSITE and not starts_kernels(range_)
