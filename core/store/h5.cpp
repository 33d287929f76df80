// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/h5.h"

#include <array>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/store/h5_detail.h"

namespace mla::h5
{

namespace fs = std::filesystem;

namespace
{

static_assert(std::is_same_v<hid_t, std::int64_t> && std::is_same_v<herr_t, int>);

std::unique_lock<std::recursive_mutex> lockLibrary()
{
    static std::recursive_mutex mutex;
    std::unique_lock lock(mutex);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); // errors are returned, not printed
    // A study that someone sends must not make this program open other files.
    if (H5Lis_registered(H5L_TYPE_EXTERNAL) > 0)
        H5Lunregister(H5L_TYPE_EXTERNAL);
    return lock;
}

/// True if another program holds the file with an exclusive flock, as HDF5 writers do.
bool heldForWriting(const fs::path& path)
{
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(descriptor);
    return held;
}

/// Checks before HDF5 sees the file: a pipe would block it, and these messages are clearer.
Status checkReadable(const fs::path& path)
{
    std::error_code code;
    const fs::file_status status = fs::status(path, code);
    if (!fs::exists(status))
        return badInput("no such file", path.string());
    if (!fs::is_regular_file(status))
        return badInput("is not a regular file, an HDF5 file is expected", path.string());
    if (::access(path.c_str(), R_OK) != 0)
        return badInput("cannot read: permission denied", path.string());
    if (fs::file_size(path, code) == 0)
        return badInput("the file is empty, an HDF5 file is expected", path.string());
    if (H5Fis_hdf5(path.c_str()) <= 0)
        return badInput("is not an HDF5 file", path.string());
    return {};
}

Handle accessList()
{
    Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fclose_degree(list.id(), H5F_CLOSE_STRONG);
    H5Pset_libver_bounds(list.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    return list;
}

/// A tracked order makes groups those of HDF5 1.8: a few links stand in the header, where the older
/// groups need a tree, a heap and a table each. A large study is read much faster so.
Handle compactGroup()
{
    Handle list(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    H5Pset_link_creation_order(list.id(), H5P_CRT_ORDER_TRACKED);
    H5Pset_obj_track_times(list.id(), false); // equal content, equal bytes
    return list;
}

herr_t collectHardLink(hid_t, const char* name, const H5L_info_t* info, void* data)
{
    if (info->type == H5L_TYPE_HARD)
        static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
}

herr_t keepFirst(unsigned, const H5E_error2_t* entry, void* data)
{
    auto& reason = *static_cast<std::string*>(data);
    if (reason.empty() && entry->desc)
        reason = entry->desc;
    return 0;
}

} // namespace

std::string takeReason()
{
    std::string reason;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keepFirst, &reason);
    H5Eclear2(H5E_DEFAULT);
    return reason;
}

Error failure(const std::string& path, const std::string& what)
{
    const std::string reason = takeReason();
    const std::string name = "'" + (path.empty() ? "/" : path) + "': " + what;
    return badInput(reason.empty() ? name : name + ": " + reason);
}

Handle::Handle(Handle&& other) noexcept
    : m_id(std::exchange(other.m_id, -1)), m_close(other.m_close)
{
}

Handle& Handle::operator=(Handle&& other) noexcept
{
    if (this != &other) {
        if (valid())
            m_close(m_id);
        m_id = std::exchange(other.m_id, -1);
        m_close = other.m_close;
    }
    return *this;
}

Handle::~Handle()
{
    if (valid())
        m_close(m_id);
}

std::string Group::child(const std::string& name) const
{
    return m_path + "/" + name;
}

Result<Group> Group::create(const std::string& name)
{
    const Handle creation = compactGroup();
    Handle handle(
        H5Gcreate2(m_handle.id(), name.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose);
    if (!handle.valid())
        return failure(child(name), "cannot create the group");
    return Group(std::move(handle), child(name));
}

Result<Group> Group::open(const std::string& name) const
{
    Handle handle(H5Gopen2(m_handle.id(), name.c_str(), H5P_DEFAULT), H5Gclose);
    if (!handle.valid())
        return failure(child(name), "cannot open the group");
    return Group(std::move(handle), child(name));
}

bool Group::has(const std::string& name) const
{
    return H5Lexists(m_handle.id(), name.c_str(), H5P_DEFAULT) > 0;
}

Result<std::vector<std::string>> Group::subgroups() const
{
    std::vector<std::string> links, names;
    hsize_t position = 0;
    if (H5Literate(m_handle.id(), H5_INDEX_NAME, H5_ITER_INC, &position, collectHardLink, &links) <
        0)
        return failure(m_path, "cannot list the group");
    for (std::string& name : links) {
        H5O_info_t info = {};
        if (H5Oget_info_by_name2(m_handle.id(), name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) <
            0)
            return failure(child(name), "cannot inspect");
        if (info.type == H5O_TYPE_GROUP)
            names.push_back(std::move(name));
    }
    return names;
}

File::File(std::unique_lock<std::recursive_mutex> lock, Handle handle, Group root)
    : m_lock(std::move(lock)), m_handle(std::move(handle)), m_root(std::move(root))
{
}

Result<File> File::open(const fs::path& path)
{
    auto lock = lockLibrary();
    MLA_CHECK(checkReadable(path));
    const Handle access = accessList();
    H5Pset_file_locking(access.id(), true, true);
    Handle handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (!handle.valid()) {
        const std::string reason = takeReason();
        if (heldForWriting(path))
            return badInput("another program holds the file open for writing", path.string(),
                            "close it there, then try again");
        return badInput("is damaged or not complete: " + reason, path.string());
    }
    Handle root(H5Gopen2(handle.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!root.valid())
        return failure("/", "cannot open the group").within(path.string());
    return File(std::move(lock), std::move(handle), Group(std::move(root), ""));
}

Result<File> File::create()
{
    constexpr std::size_t growth = std::size_t{1} << 20; // bytes
    auto lock = lockLibrary();
    const Handle access = accessList();
    H5Pset_fapl_core(access.id(), growth, false);
    Handle handle(H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose);
    if (!handle.valid())
        return computeFailed("cannot create an HDF5 file in memory: " + takeReason());
    Handle root(H5Gopen2(handle.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!root.valid())
        return computeFailed("cannot create an HDF5 file in memory: " + takeReason());
    return File(std::move(lock), std::move(handle), Group(std::move(root), ""));
}

Result<std::string> File::image()
{
    std::string bytes;
    ssize_t size = -1;
    if (H5Fflush(m_handle.id(), H5F_SCOPE_LOCAL) >= 0)
        size = H5Fget_file_image(m_handle.id(), nullptr, 0);
    if (size > 0) {
        bytes.resize(static_cast<std::size_t>(size));
        size = H5Fget_file_image(m_handle.id(), bytes.data(), bytes.size());
    }
    if (size <= 0)
        return computeFailed("cannot finish the HDF5 file: " + takeReason());
    return bytes;
}

} // namespace mla::h5
