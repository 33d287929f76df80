// SPDX-License-Identifier: GPL-3.0-or-later
// The study file NAME.h5: everything measured. Layout and units: core/store/schema.h.
// All HDF5 calls of the process are serialised here; opens are short.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "core/base/result.h"
#include "core/store/records.h"

namespace mla
{

/// Reads a whole study. Errors name the file and the HDF5 path; a truncated or foreign file is a
/// BadInput error, never a crash or a hang. Studies of a newer major version are refused.
Result<StudyData> loadStudy(const std::filesystem::path& path);

/// Replaces `path` by `study`: temporary name, fsync, rename. Other readers keep the old file.
Status saveStudy(const std::filesystem::path& path, const StudyData& study);

/// Read-modify-write under an advisory lock on `path`.lock (a second writer waits up to `patience`,
/// then gets a named error). Creates the study if there is none. When `change` fails nothing is
/// written.
Status updateStudy(const std::filesystem::path& path,
                   const std::function<Status(StudyData&)>& change,
                   std::chrono::milliseconds patience = std::chrono::seconds(30));

/// One layer's numbers as a small .h5 of their own (a part), written atomically.
Status saveLayerRecord(const std::filesystem::path& path, const LayerRecord& record);
Result<LayerRecord> loadLayerRecord(const std::filesystem::path& path);

} // namespace mla
