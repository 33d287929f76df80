// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mla
{

namespace fs = std::filesystem;

namespace
{

std::string systemReason(int code)
{
    return std::generic_category().message(code);
}

Error readError(const fs::path& path, int code)
{
    return badInput("cannot read: " + systemReason(code), path.string());
}

Error writeError(const fs::path& path, int code)
{
    return computeFailed("cannot write: " + systemReason(code), path.string());
}

/// A file descriptor that closes itself.
class Descriptor
{
public:
    explicit Descriptor(int value) : m_value(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor()
    {
        if (m_value >= 0)
            ::close(m_value);
    }
    [[nodiscard]] int get() const { return m_value; }

private:
    int m_value;
};

/// A hidden name beside `path` that no other call or process uses. The name is shortened, so that
/// a name of the longest allowed length still works.
fs::path siblingName(const fs::path& path, const char* kind)
{
    static std::atomic<unsigned> counter = 0;
    constexpr std::size_t kept = 180;
    const std::string name = path.filename().string().substr(0, kept);
    return path.parent_path() / ("." + name + "." + kind + "-" + std::to_string(::getpid()) + "-" +
                                 std::to_string(counter++));
}

fs::path folderOf(const fs::path& path)
{
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Status syncTree(const fs::path& directory)
{
    std::error_code code;
    for (fs::recursive_directory_iterator it(directory, code), end; !code && it != end;
         it.increment(code)) {
        if (it->is_symlink())
            continue;
        if (it->is_regular_file() || it->is_directory())
            MLA_CHECK(syncToDisk(it->path()));
    }
    if (code)
        return writeError(directory, code.value());
    return syncToDisk(directory);
}

/// True if `inner` is `outer` or lies below it. Both are canonical.
bool isWithin(const fs::path& inner, const fs::path& outer)
{
    auto part = inner.begin();
    for (const fs::path& expected : outer) {
        if (part == inner.end() || *part != expected)
            return false;
        ++part;
    }
    return true;
}

/// Overwriting must not take away the folder a user works or lives in.
Status refusePrecious(const fs::path& target)
{
    std::error_code code;
    const fs::path canonical = fs::canonical(target, code);
    if (code)
        return writeError(target, code.value());
    const char* home = std::getenv("HOME"); // NOLINT(concurrency-mt-unsafe)
    const fs::path current = fs::current_path(code);
    const fs::path homePath = home && *home ? fs::weakly_canonical(home, code) : fs::path();
    for (const fs::path& precious : {current, homePath})
        if (!precious.empty() && isWithin(precious, canonical))
            return usageError("refusing to overwrite " + target.string() + ", which holds " +
                              precious.string());
    return {};
}

/// 0, or the errno of renameat2.
int renameWith(const fs::path& from, const fs::path& to, unsigned flags)
{
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}

bool flagsUnsupported(int code)
{
    return code == EINVAL || code == ENOSYS;
}

} // namespace

Result<std::string> readFile(const fs::path& path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0)
        return readError(path, errno);
    struct stat info = {};
    if (::fstat(file.get(), &info) != 0)
        return readError(path, errno);
    if (S_ISDIR(info.st_mode))
        return badInput("is a directory, a file is expected", path.string());
    std::string content;
    std::size_t used = 0;
    // One byte more than the size, so that a regular file ends with a single short read.
    std::size_t room = S_ISREG(info.st_mode) ? static_cast<std::size_t>(info.st_size) + 1 : 65536;
    for (;;) {
        content.resize(used + room);
        const ssize_t got = ::read(file.get(), content.data() + used, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return readError(path, errno);
        used += static_cast<std::size_t>(got);
        if (got == 0)
            break;
        room = std::max<std::size_t>(content.size() - used, 65536);
    }
    content.resize(used);
    return content;
}

Status writeFileAtomically(const fs::path& path, std::string_view content)
{
    MLA_TRY(file, AtomicFile::create(path));
    MLA_CHECK(file.writeAt(0, std::as_bytes(std::span(content.data(), content.size()))));
    return file.commit();
}

Status syncToDisk(const fs::path& path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0 || ::fsync(file.get()) != 0)
        return writeError(path, errno);
    return {};
}

// ---------------------------------------------------------------------------- AtomicFile

AtomicFile::AtomicFile(fs::path path, fs::path temporary, int descriptor)
    : m_path(std::move(path)), m_temporary(std::move(temporary)), m_descriptor(descriptor)
{
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : m_path(std::move(other.m_path)), m_temporary(std::move(other.m_temporary)),
      m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept
{
    if (this != &other) {
        discard();
        m_path = std::move(other.m_path);
        m_temporary = std::move(other.m_temporary);
        m_descriptor = std::exchange(other.m_descriptor, -1);
    }
    return *this;
}

AtomicFile::~AtomicFile()
{
    discard();
}

void AtomicFile::discard() noexcept
{
    if (m_descriptor < 0)
        return;
    ::close(std::exchange(m_descriptor, -1));
    ::unlink(m_temporary.c_str());
}

Result<AtomicFile> AtomicFile::create(const fs::path& path)
{
    if (!path.has_filename())
        return usageError("'" + path.string() + "' names no file");
    fs::path temporary = siblingName(path, "tmp");
    constexpr int permissions = 0666; // the process' umask applies
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    if (descriptor < 0)
        return writeError(path, errno);
    return AtomicFile(path, std::move(temporary), descriptor);
}

Status AtomicFile::writeAt(std::uint64_t offset, std::span<const std::byte> data)
{
    while (!data.empty()) {
        const ssize_t put =
            ::pwrite(m_descriptor, data.data(), data.size(), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return writeError(m_path, errno);
        data = data.subspan(static_cast<std::size_t>(put));
        offset += static_cast<std::uint64_t>(put);
    }
    return {};
}

Status AtomicFile::commit()
{
    if (::fsync(m_descriptor) != 0)
        return writeError(m_path, errno);
    if (::rename(m_temporary.c_str(), m_path.c_str()) != 0)
        return writeError(m_path, errno);
    ::close(std::exchange(m_descriptor, -1));
    return syncToDisk(folderOf(m_path));
}

// ----------------------------------------------------------------------- StagedDirectory

StagedDirectory::StagedDirectory(fs::path target, fs::path staging, bool overwrite)
    : m_target(std::move(target)), m_staging(std::move(staging)), m_overwrite(overwrite)
{
}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : m_target(std::move(other.m_target)), m_staging(std::exchange(other.m_staging, {})),
      m_overwrite(other.m_overwrite)
{
}

StagedDirectory& StagedDirectory::operator=(StagedDirectory&& other) noexcept
{
    if (this != &other) {
        discard();
        m_target = std::move(other.m_target);
        m_staging = std::exchange(other.m_staging, {});
        m_overwrite = other.m_overwrite;
    }
    return *this;
}

StagedDirectory::~StagedDirectory()
{
    discard();
}

void StagedDirectory::discard() noexcept
{
    if (m_staging.empty())
        return;
    std::error_code ignored;
    fs::remove_all(m_staging, ignored);
    m_staging.clear();
}

Result<StagedDirectory> StagedDirectory::create(const fs::path& target, bool overwrite)
{
    std::error_code code;
    fs::path whole = fs::absolute(target, code).lexically_normal();
    if (!whole.has_filename()) // "dir/"
        whole = whole.parent_path();
    if (target.empty() || !whole.has_filename())
        return usageError("'" + target.string() + "' names no directory that can be written");
    const fs::file_status status = fs::symlink_status(whole, code);
    if (fs::exists(status)) {
        if (!overwrite)
            return usageError(whole.string() + " exists already",
                              "choose another name, or overwrite it with --overwrite");
        if (!fs::is_directory(status))
            return usageError(whole.string() + " is not a directory and is not overwritten");
        MLA_CHECK(refusePrecious(whole));
    }
    fs::create_directories(whole.parent_path(), code);
    if (code)
        return writeError(whole.parent_path(), code.value());
    fs::path staging = siblingName(whole, "partial");
    constexpr mode_t permissions = 0777; // the process' umask applies
    if (::mkdir(staging.c_str(), permissions) != 0)
        return writeError(staging, errno);
    return StagedDirectory(std::move(whole), std::move(staging), overwrite);
}

Status StagedDirectory::commit()
{
    MLA_CHECK(syncTree(m_staging));
    int code = renameWith(m_staging, m_target, RENAME_NOREPLACE);
    if (flagsUnsupported(code) && !fs::exists(fs::symlink_status(m_target)))
        code = renameWith(m_staging, m_target, 0);
    if (code == 0) {
        m_staging.clear();
        return syncToDisk(m_target.parent_path());
    }
    const fs::file_status status = fs::symlink_status(m_target);
    if (!fs::exists(status))
        return writeError(m_target, code);
    if (!m_overwrite)
        return usageError(m_target.string() + " has appeared meanwhile and is not overwritten");
    if (!fs::is_directory(status))
        return usageError(m_target.string() + " is not a directory and is not overwritten");
    MLA_CHECK(replaceTarget());
    MLA_CHECK(syncToDisk(m_target.parent_path()));
    discard();
    return {};
}

Status StagedDirectory::replaceTarget()
{
    int code = renameWith(m_staging, m_target, RENAME_EXCHANGE);
    if (code == 0)
        return {};
    if (!flagsUnsupported(code))
        return writeError(m_target, code);
    // A file system without exchange: one rename away, one in; a failure of the second is undone.
    const fs::path aside = siblingName(m_target, "old");
    if (code = renameWith(m_target, aside, 0); code != 0)
        return writeError(m_target, code);
    if (code = renameWith(m_staging, m_target, 0); code != 0) {
        if (renameWith(aside, m_target, 0) != 0)
            return computeFailed("the previous directory now stands at " + aside.string(),
                                 m_target.string());
        return writeError(m_target, code);
    }
    m_staging = aside;
    return {};
}

} // namespace mla
