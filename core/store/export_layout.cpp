// SPDX-License-Identifier: GPL-3.0-or-later
// The groups of exported drafts and of the checks that they passed.
#include <array>

#include "core/store/schema.h"
#include "core/store/study_layout.h"

namespace mla
{

namespace
{

/// One list of texts for both directions.
template <typename Check>
auto checkTexts(Check& check)
{
    return std::array{std::pair{schema::software, &check.software},
                      std::pair{schema::modelClass, &check.modelClass},
                      std::pair{schema::reference, &check.reference},
                      std::pair{schema::remark, &check.remark}};
}

template <typename Record>
auto exportTexts(Record& record)
{
    return std::array{std::pair{schema::run, &record.run},
                      std::pair{schema::exportLayout, &record.layout},
                      std::pair{schema::dtype, &record.dtype},
                      std::pair{schema::path, &record.path},
                      std::pair{schema::created, &record.created},
                      std::pair{schema::software, &record.software}};
}

template <typename Check>
auto checkCounts(Check& check)
{
    return std::array{std::pair{schema::prompts, &check.prompts},
                      std::pair{schema::greedyTokens, &check.greedyTokens},
                      std::pair{schema::equalTokens, &check.equalTokens}};
}

Status writeCheck(h5::Group& group, const ExportCheckRecord& check)
{
    for (const auto& [name, text] : checkTexts(check))
        MLA_CHECK(putText(group, name, *text));
    for (const auto& [name, count] : checkCounts(check))
        MLA_CHECK(group.setAttribute<std::int32_t>(name, *count));
    MLA_CHECK(group.setAttribute(schema::logitDifference, check.logitDifference));
    MLA_CHECK(group.setAttribute(schema::bound, check.bound));
    return group.setAttribute<std::int32_t>(schema::passed, check.passed ? 1 : 0);
}

Result<ExportCheckRecord> readCheck(const h5::Group& group)
{
    ExportCheckRecord check;
    for (const auto& [name, text] : checkTexts(check)) {
        MLA_TRY(value, getText(group, name));
        *text = std::move(value);
    }
    for (const auto& [name, count] : checkCounts(check)) {
        MLA_TRY(value, group.attribute<std::int32_t>(name));
        *count = value;
    }
    MLA_TRY(difference, group.attribute<double>(schema::logitDifference));
    MLA_TRY(bound, group.attribute<double>(schema::bound));
    MLA_TRY(passed, group.attribute<std::int32_t>(schema::passed));
    check.logitDifference = difference;
    check.bound = bound;
    check.passed = passed != 0;
    return check;
}

} // namespace

Status writeExport(h5::Group& group, const ExportRecord& record)
{
    for (const auto& [name, text] : exportTexts(record))
        MLA_CHECK(putText(group, name, *text));
    MLA_CHECK(group.setAttribute(schema::weightBytes, record.weightBytes));
    MLA_CHECK(group.writeTexts(schema::keeps, record.keeps));
    MLA_CHECK(group.writeTexts(schema::loses, record.loses));
    MLA_TRY(checks, group.create(schema::checks));
    for (std::size_t i = 0; i < record.checks.size(); ++i) {
        MLA_TRY(check, checks.create(schema::safeName(record.checks[i].stack)));
        MLA_CHECK(check.setAttribute<std::int64_t>(schema::order, static_cast<std::int64_t>(i)));
        MLA_CHECK(writeCheck(check, record.checks[i]));
    }
    return {};
}

Result<ExportRecord> readExport(const h5::Group& group)
{
    ExportRecord record;
    for (const auto& [name, text] : exportTexts(record)) {
        MLA_TRY(value, getText(group, name));
        *text = std::move(value);
    }
    MLA_TRY(bytes, group.attribute<std::int64_t>(schema::weightBytes));
    MLA_TRY(keeps, group.readTexts(schema::keeps));
    MLA_TRY(loses, group.readTexts(schema::loses));
    MLA_TRY(checks, group.open(schema::checks));
    MLA_TRY(names, checks.subgroups());
    std::map<std::int64_t, ExportCheckRecord> ordered;
    for (const std::string& name : names) {
        MLA_TRY(child, checks.open(name));
        MLA_TRY(check, readCheck(child));
        MLA_TRY(position, child.attribute<std::int64_t>(schema::order));
        check.stack = schema::idOf(name);
        ordered.emplace(position, std::move(check));
    }
    record.weightBytes = bytes;
    record.keeps = std::move(keeps);
    record.loses = std::move(loses);
    for (auto& [position, check] : ordered)
        record.checks.push_back(std::move(check));
    return record;
}

} // namespace mla
