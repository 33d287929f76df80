// SPDX-License-Identifier: GPL-3.0-or-later
// A line over the window that finds any command by a few letters of its name, and runs it.
#pragma once

#include <QFrame>
#include <QPointer>

#include "widgets/models/command_list_model.h"

class QLineEdit;
class QTreeView;

namespace mla::ui
{

class CommandPalette : public QFrame
{
    Q_OBJECT
public:
    /// Lies over `window`, hidden until it is opened.
    explicit CommandPalette(QWidget* window);

    void open(std::vector<Command> commands);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    [[nodiscard]] bool isElsewhere(const QObject* watched) const;
    void place();
    void selectFirst();
    void step(int rows);
    void run(int row);
    void dismiss(); ///< gives the focus back

    CommandListModel* m_model;
    QLineEdit* m_line;
    QTreeView* m_list;
    QPointer<QWidget> m_focusBefore;
};

} // namespace mla::ui
