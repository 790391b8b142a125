"""Operations that the test programs' cases must execute, from their shapes alone, and what may
explain a difference.

Everything is per launch, in operations with a multiply-add as two, by the precision names of
flopreduce: floating-point operations, and integer operations of tensor cores, which are no FLOP.
"""

from math import ceil

# What a case of this kind executes, from the shape its program printed.
KINDS = {
    "axpy": lambda c: {"fp32": 2 * c["n"]},
    "half_chain": lambda c: {"fp16": 2 * c["threads"] * c["steps"]},
    "special_chain": lambda c: {},
    "product_fp32": lambda c: {"fp32": 2 * c["m"] * c["n"] * c["k"]},
    "product_fp64": lambda c: {"fp64": 2 * c["m"] * c["n"] * c["k"]},
    "sparse_fp16": lambda c: {"tensor_fp16": c["tile_operations"] * c["tiles"]},
}
for _precision in ("fp16", "bf16", "tf32", "fp8"):
    KINDS["blas_" + _precision] = lambda c, p=_precision: {
        "tensor_" + p: 2 * c["m"] * c["n"] * c["k"]}
KINDS["blas_fp32"] = KINDS["product_fp32"]
KINDS["blas_fp64"] = KINDS["product_fp64"]

# Largest tile of a library kernel. Its rows and columns outside the product are computed and thrown
# away.
TILE_M, TILE_N, TILE_K = 256, 256, 128
# Scalar operations of a library kernel per element of the result: scaling by alpha and beta, adding
# parts that were computed apart (at most this many).
EPILOGUE = 16
# Most operands that a kernel makes by a packed half instruction instead of a move, per thread.
HALF_CONSTANTS = 32
# fp64 runs on tensor cores or on scalar units as the library chooses.
SAME = {"tensor_fp64": "fp64"}


def expected(case):
    return KINDS[case["kind"]](case)


def _padded(case):
    m, n, k = (ceil(case[d] / tile) * tile
               for d, tile in (("m", TILE_M), ("n", TILE_N), ("k", TILE_K)))
    return m, n, k


def merge(flop):
    """Precisions that may stand for each other, added up."""
    merged = {}
    for name, value in flop.items():
        merged[SAME.get(name, name)] = merged.get(SAME.get(name, name), 0) + value
    return merged


def explain(case, precision, theory, executed):
    """Why `executed` differs from `theory`, both per launch in one precision, or None where nothing
    explains it."""
    if executed == theory:
        return ""
    extra = executed - theory
    kind = case["kind"]
    if kind.startswith("blas_") and extra > 0:
        return _explain_product(case, precision, theory, executed)
    if kind == "half_chain" and precision == "fp16" and executed == 2 * theory:
        return "scalar half arithmetic executes packed instructions; both lanes are counted"
    if kind == "sparse_fp16" and 2 * executed == theory:
        return "sparse product: the half that is skipped is not counted"
    if precision == "fp16" and extra > 0 and extra % (4 * 32) == 0:
        constants = extra / (4 * case["threads"])
        if constants <= HALF_CONSTANTS:
            return f"{constants:g} constants per thread made by packed half instructions"
    return None


def _explain_product(case, precision, theory, executed):
    m, n, k = _padded(case)
    epilogue = EPILOGUE * m * n
    if theory == 0:
        if precision in ("fp32", "fp16", "fp64") and executed <= epilogue:
            return f"epilogue: {executed / (case['m'] * case['n']):.3g} operations per element"
        return None
    scalar = precision in ("fp32", "fp64")  # product and epilogue are counted together
    padding = 2 * m * n * k - theory
    if executed - theory <= padding + (epilogue if scalar else 0):
        padded = "padding to whole tiles" if padding else ""
        return " and ".join(filter(None, (padded, "epilogue" if scalar else "")))
    return None
