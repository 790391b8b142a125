// JSON schemas of what commands print with --format json.
#pragma once
#include "sections/parts/fields.h"

namespace flopinj::reduce {

Json peaks_schema();
Json training_schema();   // project train
Json inference_schema();  // project infer

}  // namespace flopinj::reduce
