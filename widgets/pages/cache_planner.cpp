// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/cache_planner.h"

#include <algorithm>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/common/conversion_text.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/table_export.h"
#include "widgets/models/cache_budget_model.h"
#include "widgets/models/model_table.h"

namespace mla::ui
{

CachePlanner::CachePlanner(QWidget* parent) : QWidget(parent), m_model(new CacheBudgetModel(this))
{
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(buildInputs());
    layout->addWidget(buildTable(), 1);
    setModel({});
}

QSpinBox* CachePlanner::addSpin(const QString& label, int least, int most, int value)
{
    auto* spin = new QSpinBox(this);
    spin->setRange(least, most);
    spin->setValue(value);
    spin->setAccessibleName(QString(label).remove(QLatin1Char('&')));
    m_form->addRow(label, spin);
    connect(spin, &QSpinBox::valueChanged, this, &CachePlanner::showPlan);
    return spin;
}

QWidget* CachePlanner::buildInputs()
{
    auto* inputs = new QWidget(this);
    m_form = new QFormLayout(inputs);
    m_form->setContentsMargins(0, 0, 0, 0);
    m_converter = new QComboBox(this);
    for (const char* converter : {"transmla", "mha2mla"})
        m_converter->addItem(converterTitle(converter), QString::fromLatin1(converter));
    m_converter->setAccessibleName(tr("Converter"));
    m_rope = new QComboBox(this);
    m_rope->setAccessibleName(tr("Rotary dimensions"));
    m_rope->setToolTip(tr("qk_rope_head_dim: dimensions of a key head that keep their rotation"));
    m_form->addRow(tr("Con&verter"), m_converter);
    m_form->addRow(tr("Rotary &dimensions d_r"), m_rope);
    m_rank = addSpin(tr("Latent &rank r"), 1, 1, 1);
    m_rank->setToolTip(tr("kv_lora_rank: size of the cached latent"));
    m_budget = new QDoubleSpinBox(this);
    m_budget->setRange(0.1, 100);
    m_budget->setDecimals(1);
    m_budget->setSuffix(tr(" %"));
    m_budget->setAccessibleName(tr("Cache budget in per cent of the original"));
    m_budget->setToolTip(tr("Share of the original's cache: gives the largest rank that fits"));
    m_form->addRow(tr("Cache b&udget"), m_budget);
    m_context = addSpin(tr("Conte&xt (tokens)"), 1, 1 << 24, 8192);
    m_context->setGroupSeparatorShown(true);
    m_batch = addSpin(tr("&Batch (sequences)"), 1, 1 << 16, 1);
    m_type = new QComboBox(this);
    for (const CacheType& type : cacheTypes())
        m_type->addItem(QString::fromLatin1(type.name), type.bytesPerElement);
    m_type->setAccessibleName(tr("Cache type"));
    m_form->addRow(tr("Cache &type"), m_type);
    connect(m_converter, &QComboBox::currentIndexChanged, this, &CachePlanner::chooseConverter);
    connect(m_rope, &QComboBox::currentIndexChanged, this, &CachePlanner::chooseRope);
    connect(m_rank, &QSpinBox::valueChanged, this, &CachePlanner::showBudget);
    connect(m_budget, &QDoubleSpinBox::valueChanged, this, &CachePlanner::takeBudget);
    connect(m_type, &QComboBox::currentIndexChanged, this, &CachePlanner::showPlan);
    return inputs;
}

QWidget* CachePlanner::buildTable()
{
    auto* side = new QWidget(this);
    m_result = new QLabel(side);
    m_result->setWordWrap(true);
    m_result->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_result->setAccessibleName(tr("Cache sizes"));
    m_issues = new QLabel(side);
    m_issues->setWordWrap(true);
    m_issues->setTextFormat(Qt::PlainText);
    m_table = new QTableView(side);
    m_table->setModel(m_model);
    m_table->setAccessibleName(tr("KV cache by context length"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAlternatingRowColors(true);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 4);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_run = new QPushButton(tr("&Use in a new run…"), side);
    m_run->setToolTip(tr("Opens the new-run dialog with this checkpoint and these settings"));
    connect(m_run, &QPushButton::clicked, this, [this] { emit runRequested(settings()); });
    auto* exports = new TableExportButton(
        [this] {
            return tableFromModel(*m_model, CacheBudgetModel::valueRole, QStringLiteral("kv-cache"),
                                  tr("KV cache in bytes"));
        },
        side);
    connect(exports, &TableExportButton::exportFailed, this, &CachePlanner::exportFailed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_run);
    line->addStretch(1);
    line->addWidget(exports);
    auto* column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_result);
    column->addWidget(m_issues);
    column->addWidget(m_table, 1);
    column->addLayout(line);
    return side;
}

void CachePlanner::setModel(const std::optional<ModelConfig>& config, const std::string& cacheDtype)
{
    m_config = config;
    const bool plannable = config && !config->isMla();
    setEnabled(config.has_value());
    const bool shown = plannable || !config;
    m_form->setRowVisible(m_converter, shown);
    m_form->setRowVisible(m_rope, shown);
    m_form->setRowVisible(m_rank, shown);
    m_form->setRowVisible(m_budget, shown);
    m_run->setVisible(shown);
    if (const int type = m_type->findText(text(cacheDtype)); type >= 0)
        m_type->setCurrentIndex(type);
    if (plannable)
        proposeConverter();
    showPlan();
}

/// Half of the cache with the converter chosen last, or with the one that takes the model.
void CachePlanner::proposeConverter()
{
    ConvertSettings probe = settings();
    const auto refused = [&] {
        const std::vector<ConversionIssue> issues = conversionIssues(*m_config, probe);
        return !issues.empty() && issues.front().blocking &&
               issues.front().setting == ConversionSetting::Model;
    };
    if (refused()) {
        probe.converter = probe.converter == "transmla" ? "mha2mla" : "transmla";
        const QScopedValueRollback filling(m_filling, true);
        if (!refused())
            m_converter->setCurrentIndex(m_converter->findData(text(probe.converter)));
    }
    chooseConverter();
}

void CachePlanner::chooseConverter()
{
    if (!m_config || m_config->isMla() || m_filling)
        return;
    {
        const QScopedValueRollback filling(m_filling, true);
        m_rope->clear();
        for (const int dim : conversionLimits(*m_config, settings()).ropeDims)
            m_rope->addItem(QString::number(dim), dim);
        const int half = m_rope->findData(m_config->headDim / 2);
        m_rope->setCurrentIndex(std::max(0, half));
        m_rank->setMaximum(std::max(1, conversionLimits(*m_config, settings()).largestRank));
        m_budget->setValue(50);
    }
    takeBudget();
}

void CachePlanner::chooseRope()
{
    if (!m_config || m_filling)
        return;
    m_rank->setMaximum(std::max(1, conversionLimits(*m_config, settings()).largestRank));
    showBudget();
    showPlan();
}

/// From the budget to the rank; where no rank fits, the smallest stands and the result says so.
void CachePlanner::takeBudget()
{
    if (!m_config || m_filling)
        return;
    const double share = m_budget->value() / 100.0;
    const auto original = static_cast<double>(originalCacheElements(*m_config));
    const Result<int> rank = rankForBudget(*m_config, settings(), share * original + 1e-9);
    {
        const QScopedValueRollback filling(m_filling, true);
        m_rank->setValue(rank ? *rank : 1);
    }
    showPlan();
}

/// From the rank to the budget it takes.
void CachePlanner::showBudget()
{
    if (!m_config || m_filling)
        return;
    const QScopedValueRollback filling(m_filling, true);
    m_budget->setValue(100.0 * double(plannedCacheElements(*m_config, settings())) /
                       double(originalCacheElements(*m_config)));
}

ConvertSettings CachePlanner::settings() const
{
    ConvertSettings settings;
    settings.converter = m_converter->currentData().toString().toStdString();
    settings.kvLoraRank = m_rank->value();
    settings.qkRopeHeadDim = m_rope->currentData().toInt();
    return settings;
}

CacheUse CachePlanner::use() const
{
    return {m_context->value(), m_batch->value(), m_type->currentData().toInt()};
}

QString CachePlanner::resultText(std::optional<std::int64_t> elements) const
{
    const qint64 original = originalCacheElements(*m_config);
    const qint64 before = cacheBytes(*m_config, original, use());
    const std::optional<std::int64_t> after = convertedBytes(*m_config, elements, use());
    if (!after)
        return tr("Original: %1 (%2 elements per token and layer)")
            .arg(bytesText(before))
            .arg(original);
    const double share = double(*after) / double(before);
    return tr("<b>%1</b> instead of %2: <b>%3 %</b>, 1 : %4")
        .arg(bytesText(*after), bytesText(before), numberText(100 * share, 1),
             numberText(1 / share, 2));
}

void CachePlanner::showIssues(const std::vector<ConversionIssue>& issues)
{
    QStringList lines;
    bool blocking = false;
    for (const ConversionIssue& issue : issues) {
        lines << issueText(issue, *m_config, settings());
        blocking |= issue.blocking;
    }
    m_issues->setText(lines.join(QLatin1Char('\n')));
    m_issues->setVisible(!lines.isEmpty());
    QPalette colours = palette();
    colours.setColor(QPalette::WindowText, deltaColor(-100, isDark(colours)));
    m_issues->setPalette(colours);
    m_run->setEnabled(!blocking);
}

void CachePlanner::showPlan()
{
    if (m_filling || !m_table)
        return;
    std::optional<std::int64_t> elements;
    std::vector<ConversionIssue> issues;
    if (m_config && !m_config->isMla()) {
        issues = conversionIssues(*m_config, settings());
        if (checkConversion(*m_config, settings()).ok())
            elements = plannedCacheElements(*m_config, settings());
    }
    m_model->setCache(m_config, elements, use());
    if (!m_config) {
        m_result->clear();
        m_issues->hide();
        return;
    }
    QString result = resultText(elements);
    if (elements)
        result += QStringLiteral("<br>") + tr("%1 of %2 elements per token and layer")
                                               .arg(*elements)
                                               .arg(originalCacheElements(*m_config));
    m_result->setText(result);
    showIssues(issues);
}

} // namespace mla::ui
