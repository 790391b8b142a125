#include "reader/batch_fields.h"

#include <protozero/pbf_reader.hpp>

namespace flopinj::reduce {

bool BatchFields::take(protozero::data_view body, bool& packed_once) {
  columns_ = {};
  numbers_ = {};
  protozero::pbf_reader reader(body);
  while (reader.next()) {
    const uint32_t field = reader.tag();
    const uint32_t bit = field < kMost ? uint32_t{1} << field : 0;
    if ((kinds_.columns & bit) != 0) {
      packed_once = reader.wire_type() == protozero::pbf_wire_type::length_delimited &&
                    columns_[field].empty();
      if (!packed_once) return true;
      columns_[field] = reader.get_view();
    } else if ((kinds_.numbers & bit) != 0) {
      if (reader.wire_type() != protozero::pbf_wire_type::varint) return false;
      numbers_[field] = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
  return true;
}

}  // namespace flopinj::reduce
