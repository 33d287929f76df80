// SPDX-License-Identifier: GPL-3.0-or-later
// What one head attends to on a prompt: original, draft and difference side by side, with the
// prompt, the layer and the head to look at. Lives on the GUI thread.
#pragma once

#include <array>
#include <optional>

#include <QWidget>

#include "core/store/records.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace mla::ui
{

class PlotView;

/// A map of the selected run.
struct MapChoice {
    int layer = 0, head = 0; ///< head: of the queries
    QString prompt;
};

class AttentionView : public QWidget
{
    Q_OBJECT
public:
    /// `plots`: original, draft, difference; of the page, become children of this.
    AttentionView(const std::array<PlotView*, 3>& plots, QWidget* parent = nullptr);

    /// Shows the maps of `run`, which must live until the next call; null: none. Sizes bound the
    /// choice of layer and head; 0 = not known.
    void setRun(const RunRecord* run, int layers, int heads);
    /// Whether maps can be asked for now.
    void setReady(bool ready);
    void setLayer(std::optional<int> layer);
    [[nodiscard]] MapChoice choice() const;

signals:
    void requested(const mla::ui::MapChoice& choice);
    void layerChosen(int layer); ///< by the user

private:
    QWidget* buildChoice();
    void fillStored();
    void take(const AttentionMapRecord& map); ///< as the choice
    void showStored(int index);
    void showChosen();
    void show(const AttentionMapRecord* map);
    void followPrompt();

    std::array<PlotView*, 3> m_plots;
    const RunRecord* m_run = nullptr;
    bool m_ready = false;
    QComboBox* m_stored;
    QLineEdit* m_prompt;
    QSpinBox *m_layer, *m_head;
    QPushButton* m_compute;
    QLabel* m_caption;
};

} // namespace mla::ui
