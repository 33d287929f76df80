// SPDX-License-Identifier: GPL-3.0-or-later
// A task's continuations as a study keeps them.
#pragma once

#include <vector>

#include "core/model/sampling.h"
#include "core/store/records.h"

namespace mla
{

std::vector<Continuation> fromRecord(const ContinuationRecord& record);
/// Without id, target and task.
ContinuationRecord toRecord(const std::vector<Continuation>& all);

} // namespace mla
