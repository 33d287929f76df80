// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for everything a run needs: models, converters, calibration, refinement, acceptance, files.
#pragma once

#include <functional>

#include <QDialog>
#include <QTimer>

#include "core/pipeline/weight_spectra.h"
#include "widgets/dialogs/run_form.h"
#include "widgets/jobs/latest_task.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace mla::ui
{

class ConverterSection;
class FormSection;
class PathField;

using ModelInspector = std::function<Result<InspectReport>(const std::filesystem::path&)>;
/// Answers on the GUI thread once the checkpoint's spectra are known; perhaps after the dialog.
using SpectraAsker =
    std::function<void(const QString& checkpoint,
                       const std::function<void(const Result<WeightSpectra>&)>& answer)>;

/// Not modal to the program: open() it. Checkpoints are read off the GUI thread as they are typed.
class NewRunDialog : public QDialog
{
    Q_OBJECT
public:
    explicit NewRunDialog(ModelInspector inspect, QWidget* parent = nullptr);

    [[nodiscard]] RunForm form() const;
    void setForm(const RunForm& form);
    void savePlan(const QString& file);
    void loadPlan(const QString& file);
    void copyCommandLine() const;
    void setCheckpoint(const QString& path);
    void setStudy(const QString& path);                  ///< results are added to it
    void setConversion(const ConvertSettings& settings); ///< the one converter to run
    void setSpectraAsker(SpectraAsker ask) { m_askSpectra = std::move(ask); }
    [[nodiscard]] bool canStart() const { return !firstBlocking(m_issues); }
    [[nodiscard]] const std::vector<Issue>& issues() const { return m_issues; }

signals:
    void planned(const mla::StudyPlan& plan); ///< the user pressed Start

private:
    /// One model path with what is known about it.
    struct Probe {
        PathField* field = nullptr;
        QLabel* summary = nullptr;
        ModelState state;
        LatestTask task;
        QTimer delay;
    };
    FormSection* buildModels();
    FormSection* buildCalibration();
    FormSection* buildRefinement();
    FormSection* buildAcceptance();
    FormSection* buildOutput();
    QWidget* buildFooter();
    QSpinBox* spin(int low, int high, int value, const QString& name);
    void addPlanButtons(class QHBoxLayout* line);
    void askForPlan(bool save);
    void watch(Probe& probe);
    void inspect(Probe& probe);
    void showModel(Probe& probe);
    void askSpectra();
    void proposePaths();
    void check();
    void showReason();

    ModelInspector m_inspect;
    SpectraAsker m_askSpectra;
    Probe m_checkpoint, m_target;
    std::vector<FormSection*> m_sections;
    ConverterSection* m_transmla = nullptr;
    ConverterSection* m_mha2mla = nullptr;
    PathField *m_calibration = nullptr, *m_tasks = nullptr, *m_study = nullptr, *m_drafts = nullptr;
    QSpinBox *m_sequences = nullptr, *m_length = nullptr, *m_steps = nullptr, *m_batch = nullptr;
    QSpinBox *m_k = nullptr, *m_newTokens = nullptr, *m_minTokens = nullptr, *m_limit = nullptr;
    QSpinBox *m_seed = nullptr, *m_threads = nullptr;
    QCheckBox *m_partialRope = nullptr, *m_functional = nullptr, *m_chat = nullptr;
    QDoubleSpinBox* m_rate = nullptr;
    QComboBox *m_method = nullptr, *m_backend = nullptr, *m_device = nullptr;
    QLabel* m_reason = nullptr;
    QPushButton* m_start = nullptr;
    RunForm m_loaded; ///< keeps what a plan says and this dialog does not ask
    std::vector<Issue> m_issues;
    bool m_studyChosen = false, m_draftsChosen = false, m_ready = false;
};

} // namespace mla::ui
