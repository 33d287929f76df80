// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/study.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/store/h5.h"
#include "core/store/schema.h"
#include "core/store/study_layout.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

/// An advisory lock beside a study; the file stays, so that nobody locks a deleted one.
class WriterLock
{
public:
    static Result<WriterLock> take(const fs::path& study, std::chrono::milliseconds patience)
    {
        fs::path path = study;
        path += ".lock";
        constexpr mode_t permissions = 0666; // as the umask allows
        WriterLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, permissions));
        if (lock.m_descriptor < 0)
            return failed(path, errno);
        const auto deadline = std::chrono::steady_clock::now() + patience;
        while (::flock(lock.m_descriptor, LOCK_EX | LOCK_NB) != 0) {
            const int code = errno;
            if (code == EINTR)
                continue;
            if (code != EWOULDBLOCK)
                return failed(path, code);
            if (std::chrono::steady_clock::now() >= deadline)
                return computeFailed("another program is writing to this study", study.string(),
                                     "wait until it has finished, or end it");
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        return lock;
    }
    WriterLock(WriterLock&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}
    WriterLock& operator=(WriterLock&&) = delete;
    ~WriterLock()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }

private:
    explicit WriterLock(int descriptor) : m_descriptor(descriptor) {}
    static Error failed(const fs::path& path, int code)
    {
        return computeFailed("cannot lock: " + std::generic_category().message(code),
                             path.string());
    }
    int m_descriptor;
};

std::string nowUtc()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    ::gmtime_r(&now, &parts);
    std::string text(32, '\0');
    text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
    return text;
}

Status checkFormat(const h5::Group& root, const std::string& expected)
{
    if (!root.hasAttribute(schema::format))
        return badInput("is an HDF5 file, but not of format " + expected);
    MLA_TRY(found, root.textAttribute(schema::format));
    if (found != expected)
        return badInput("is of format '" + found + "', " + expected + " is expected");
    MLA_TRY(version, root.textAttribute(schema::version));
    return schema::checkVersion(version);
}

/// The library works in memory only; the disk sees one finished image.
template <typename Record, typename Write>
Status save(const fs::path& path, const char* format, const Record& record, Write write)
{
    const auto image = [&]() -> Result<std::string> {
        MLA_TRY(file, h5::File::create());
        MLA_CHECK(file.root().setTextAttribute(schema::format, format));
        MLA_CHECK(file.root().setTextAttribute(schema::version, schema::versionText()));
        MLA_CHECK(write(file.root(), record));
        return file.image();
    }();
    if (!image)
        return Error(image.error()).within(path.string());
    return writeFileAtomically(path, image.value());
}

template <typename Record, typename Read>
Result<Record> load(const fs::path& path, const char* format, Read read)
{
    MLA_TRY(file, h5::File::open(path));
    if (auto status = checkFormat(file.root(), format); !status)
        return std::move(status).error().within(path.string());
    Result<Record> record = read(file.root());
    if (!record)
        return std::move(record).error().within(path.string());
    return record;
}

} // namespace

Result<StudyData> loadStudy(const fs::path& path)
{
    return load<StudyData>(path, schema::studyFormat, readStudy);
}

Status saveStudy(const fs::path& path, const StudyData& study)
{
    return save(path, schema::studyFormat, study, writeStudy);
}

Status updateStudy(const fs::path& path, const std::function<Status(StudyData&)>& change,
                   std::chrono::milliseconds patience)
{
    const Result<WriterLock> lock = WriterLock::take(path, patience);
    if (!lock)
        return lock.error();
    StudyData study;
    std::error_code code;
    if (fs::exists(fs::symlink_status(path, code))) {
        MLA_TRY(stored, loadStudy(path));
        study = std::move(stored);
    } else {
        study.created = nowUtc();
    }
    MLA_CHECK(change(study));
    return saveStudy(path, study);
}

Status saveLayerRecord(const fs::path& path, const LayerRecord& record)
{
    return save(path, schema::layerFormat, record, writeLayer);
}

Result<LayerRecord> loadLayerRecord(const fs::path& path)
{
    return load<LayerRecord>(path, schema::layerFormat, readLayer);
}

} // namespace mla
