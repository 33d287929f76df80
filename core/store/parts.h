// SPDX-License-Identifier: GPL-3.0-or-later
// Results in flight: NAME.parts/<run>/ holds run.json and, per finished layer, NNN.safetensors
// (weights) and NNN.h5 (numbers), each written whole. A layer counts as done when its .h5 is there,
// which is renamed last: a kill at any moment loses at most the layer in flight.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/safetensors.h"
#include "core/store/records.h"

namespace mla
{

class PartsFolder
{
public:
    /// Opens or creates `folder` for a run described by `manifest` (canonical JSON text). Existing
    /// parts are taken up only if `resume` and their manifest is equal, otherwise: with `resume` an
    /// error that names the first differing key; without, they are removed. Several processes may
    /// work in one folder if all but the first resume; to remove parts that another process is
    /// writing is refused (Usage). Files that are not parts are never touched.
    static Result<PartsFolder> open(const std::filesystem::path& folder,
                                    const std::string& manifest, bool resume);

    [[nodiscard]] const std::filesystem::path& folder() const { return m_folder; }
    /// Layers whose two files are whole.
    [[nodiscard]] const std::set<LayerIndex>& finished() const { return m_finished; }
    /// Marks the record complete.
    Status write(const LayerRecord& record, std::span<const TensorView> tensors);
    Result<LayerRecord> record(LayerIndex layer) const;
    Result<SafetensorsFile> tensors(LayerIndex layer) const;
    /// Deletes the parts and emptied folders up to NAME.parts once their content stands in the
    /// study and the draft directory.
    Status remove();

private:
    PartsFolder() = default;
    std::filesystem::path m_folder;
    std::set<LayerIndex> m_finished;
    std::shared_ptr<const int> m_lock; ///< descriptor of the folder, locked while any copy lives
};

/// A run that was begun and not finished, as found beside a study.
struct UnfinishedRun {
    std::filesystem::path folder;
    std::string manifest; ///< JSON text of run.json
    int finishedLayers = 0;
};
/// Scans `partsRoot` (NAME.parts/); unreadable entries are skipped.
std::vector<UnfinishedRun> unfinishedRuns(const std::filesystem::path& partsRoot);

} // namespace mla
