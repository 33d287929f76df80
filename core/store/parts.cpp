// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/parts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/store/schema.h"
#include "core/store/study.h"

namespace mla
{

namespace fs = std::filesystem;
using nlohmann::json;

namespace
{

constexpr auto manifestName = "run.json";
constexpr auto numbersSuffix = ".h5";
constexpr auto weightsSuffix = ".safetensors";

/// The layer of "NNN<suffix>"; nothing for any other name.
std::optional<LayerIndex> layerOf(std::string_view name, std::string_view suffix)
{
    if (!name.ends_with(suffix))
        return std::nullopt;
    name.remove_suffix(suffix.size());
    int layer = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (code != std::errc() || end != name.data() + name.size() || layer < 0 ||
        schema::layerName(LayerIndex(layer)) != name)
        return std::nullopt;
    return LayerIndex(layer);
}

bool isPart(std::string_view name)
{
    return name == manifestName || layerOf(name, numbersSuffix) || layerOf(name, weightsSuffix);
}

/// A temporary file of a writer that was killed: ".NNN.h5.…", ".run.json.…".
bool isLeftover(std::string_view name)
{
    if (!name.starts_with('.'))
        return false;
    name.remove_prefix(1);
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
        if (isPart(name.substr(0, dot)))
            return true;
    return false;
}

Error folderError(const fs::path& folder, const std::string& what, const std::error_code& code)
{
    return computeFailed(what + ": " + code.message(), folder.string());
}

Result<std::vector<std::string>> fileNames(const fs::path& folder)
{
    std::vector<std::string> names;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
        names.push_back(it->path().filename().string());
    if (code)
        return folderError(folder, "cannot list the folder", code);
    std::ranges::sort(names);
    return names;
}

/// Removes our files of a kind; anything else in the folder is left alone.
Status removeFiles(const fs::path& folder, bool (*matches)(std::string_view))
{
    MLA_TRY(names, fileNames(folder));
    // Numbers before weights (they sort first): a layer never counts as done without its weights.
    for (const std::string& name : names) {
        std::error_code code;
        if (matches(name) && !fs::remove(folder / name, code) && code)
            return folderError(folder / name, "cannot remove", code);
    }
    return {};
}

/// Held while a process works in a folder: shared by those that resume, exclusive to clear it.
std::shared_ptr<const int> openFolder(const fs::path& folder)
{
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return {new int(descriptor), [](const int* value) {
                if (*value >= 0)
                    ::close(*value);
                delete value;
            }};
}

bool heldByOthers(int folder)
{
    return ::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Waits while another process clears the folder.
void share(int folder)
{
    while (::flock(folder, LOCK_SH) != 0 && errno == EINTR) {
    }
}

/// Where `stored` and `wanted` differ first, as "settings.steps: stored 60, now 100".
std::string firstDifference(const json& stored, const json& wanted, const std::string& path)
{
    if (!stored.is_object() || !wanted.is_object())
        return path + ": stored " + stored.dump() + ", now " + wanted.dump();
    const auto join = [&path](const std::string& key) {
        return path.empty() ? key : path + "." + key;
    };
    for (const auto& [key, value] : stored.items()) {
        if (!wanted.contains(key))
            return join(key) + ": stored " + value.dump() + ", now absent";
        if (value != wanted[key])
            return firstDifference(value, wanted[key], join(key));
    }
    for (const auto& [key, value] : wanted.items())
        if (!stored.contains(key))
            return join(key) + ": not stored, now " + value.dump();
    return path;
}

Status checkManifest(const fs::path& file, const std::string& manifest)
{
    MLA_TRY(text, readFile(file));
    const json stored = json::parse(text, nullptr, false);
    const json wanted = json::parse(manifest, nullptr, false);
    if (stored.is_discarded())
        return badInput("is not valid JSON", file.string(), "start the run anew, without resuming");
    if (stored == wanted)
        return {};
    return badInput("the unfinished run has other settings, " + firstDifference(stored, wanted, ""),
                    file.string(), "use the same settings, or start anew without resuming");
}

/// Layers whose both files are there and whole.
std::set<LayerIndex> finishedLayers(const fs::path& folder, const std::vector<std::string>& names)
{
    std::set<LayerIndex> layers;
    for (const std::string& name : names) {
        const auto layer = layerOf(name, numbersSuffix);
        if (!layer)
            continue;
        const auto record = loadLayerRecord(folder / name);
        const auto tensors =
            SafetensorsFile::open(folder / (schema::layerName(*layer) + weightsSuffix));
        if (record && record->layer == *layer && tensors)
            layers.insert(*layer);
    }
    return layers;
}

} // namespace

Result<PartsFolder> PartsFolder::open(const fs::path& folder, const std::string& manifest,
                                      bool resume)
{
    std::error_code code;
    fs::create_directories(folder, code);
    if (code)
        return folderError(folder, "cannot create the folder", code);
    PartsFolder parts;
    parts.m_folder = folder;
    parts.m_lock = openFolder(folder);
    const bool shared = heldByOthers(*parts.m_lock);
    if (shared && !resume)
        return usageError("another process is working on the run in " + folder.string(),
                          "wait until it has finished, or end it");
    if (shared)
        share(*parts.m_lock);
    const fs::path file = folder / manifestName;
    const bool takeUp = resume && fs::exists(file, code);
    if (takeUp)
        MLA_CHECK(checkManifest(file, manifest));
    if (!shared)
        MLA_CHECK(removeFiles(folder, isLeftover));
    if (!takeUp) {
        MLA_CHECK(removeFiles(folder, isPart));
        MLA_CHECK(writeFileAtomically(file, manifest));
    }
    share(*parts.m_lock);
    MLA_TRY(names, fileNames(folder));
    parts.m_finished = finishedLayers(folder, names);
    return parts;
}

Status PartsFolder::write(const LayerRecord& record, std::span<const TensorView> tensors)
{
    const std::string stem = schema::layerName(record.layer);
    LayerRecord finished = record;
    finished.complete = true;
    MLA_CHECK(writeSafetensors(m_folder / (stem + weightsSuffix), tensors));
    MLA_CHECK(saveLayerRecord(m_folder / (stem + numbersSuffix), finished));
    m_finished.insert(record.layer);
    return {};
}

Result<LayerRecord> PartsFolder::record(LayerIndex layer) const
{
    return loadLayerRecord(m_folder / (schema::layerName(layer) + numbersSuffix));
}

Result<SafetensorsFile> PartsFolder::tensors(LayerIndex layer) const
{
    return SafetensorsFile::open(m_folder / (schema::layerName(layer) + weightsSuffix));
}

Status PartsFolder::remove()
{
    MLA_CHECK(removeFiles(m_folder, isLeftover));
    MLA_CHECK(removeFiles(m_folder, isPart));
    m_finished.clear();
    // Empty folders go too, up to NAME.parts; a folder that holds anything else stays.
    std::error_code code;
    for (fs::path folder = m_folder; fs::remove(folder, code) && !code;
         folder = folder.parent_path())
        if (folder.extension() == ".parts" || folder.parent_path().empty())
            break;
    return {};
}

std::vector<UnfinishedRun> unfinishedRuns(const fs::path& partsRoot)
{
    constexpr int deepest = 4; // NAME.parts/<run>/ and a little more
    std::vector<UnfinishedRun> runs;
    std::error_code code;
    fs::recursive_directory_iterator it(partsRoot, fs::directory_options::skip_permission_denied,
                                        code);
    for (const fs::recursive_directory_iterator end; !code && it != end; it.increment(code)) {
        if (it.depth() >= deepest)
            it.disable_recursion_pending();
        if (it->path().filename() != manifestName)
            continue;
        const fs::path folder = it->path().parent_path();
        const auto manifest = readFile(it->path());
        const auto names = fileNames(folder);
        if (!manifest || !names || !json::accept(manifest.value()))
            continue;
        const auto finished = std::ranges::count_if(names.value(), [](const std::string& name) {
            return layerOf(name, numbersSuffix).has_value();
        });
        runs.push_back({folder, manifest.value(), static_cast<int>(finished)});
    }
    std::ranges::sort(runs, {}, &UnfinishedRun::folder);
    return runs;
}

} // namespace mla
