// The figures of docs/designs in Chinese, for docs/zh/designs.
#pragma once

#include "design_picture.h"

namespace design {

/// Returns the figure with its texts in Chinese. Ends the program if the table has no Chinese text
/// for one of them.
Figure in_chinese(Figure figure);

}  // namespace design
