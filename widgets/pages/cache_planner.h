// SPDX-License-Identifier: GPL-3.0-or-later
// Calculator of KV caches: what a model caches, what a conversion of it would cache, and back from
// a budget to the largest rank. Answers at once; nothing is computed on tensors.
#pragma once

#include <optional>

#include <QWidget>

#include "core/convert/conversion_limits.h"

class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QPushButton;
class QSpinBox;
class QTableView;

namespace mla::ui
{

class CacheBudgetModel;

class CachePlanner : public QWidget
{
    Q_OBJECT
public:
    explicit CachePlanner(QWidget* parent = nullptr);

    /// `cacheDtype`: the type chosen at first, a name of cacheTypes().
    void setModel(const std::optional<ModelConfig>& config, const std::string& cacheDtype = {});
    [[nodiscard]] ConvertSettings settings() const;
    [[nodiscard]] CacheUse use() const;

signals:
    void runRequested(const mla::ConvertSettings& settings); ///< the user wants to run this plan
    void exportFailed(const QString& message);

private:
    QWidget* buildInputs();
    QWidget* buildTable();
    QSpinBox* addSpin(const QString& label, int least, int most, int value);
    void proposeConverter();
    void chooseConverter();
    void chooseRope();
    void takeBudget();
    void showBudget();
    void showPlan();
    void showIssues(const std::vector<ConversionIssue>& issues);
    [[nodiscard]] QString resultText(std::optional<std::int64_t> elements) const;

    std::optional<ModelConfig> m_config;
    CacheBudgetModel* m_model;
    QFormLayout* m_form = nullptr;
    QComboBox *m_converter = nullptr, *m_rope = nullptr, *m_type = nullptr;
    QSpinBox *m_rank = nullptr, *m_context = nullptr, *m_batch = nullptr;
    QDoubleSpinBox* m_budget = nullptr;
    QLabel *m_result = nullptr, *m_issues = nullptr;
    QPushButton* m_run = nullptr;
    QTableView* m_table = nullptr;
    bool m_filling = false; ///< fields are being set by the program
};

} // namespace mla::ui
