// SPDX-License-Identifier: GPL-3.0-or-later
// The user guide beside the program's window: a list of questions, a search, the page.
#pragma once

#include <QWidget>

class QAction;
class QLabel;
class QLineEdit;
class QListView;
class QSplitter;

namespace mla::ui
{

class EmptyState;
class HelpBrowser;
class HelpPageModel;

/// A window of its own that blocks nothing. Keeps its size and place in the user's settings.
class HelpWindow : public QWidget
{
    Q_OBJECT
public:
    /// `folder`: holds the pages, index.md among them; without any the window says so.
    explicit HelpWindow(const QString& folder, QWidget* parent = nullptr);
    ~HelpWindow() override;

    /// Shows and raises the window. `id`: file name without .md; an unknown one shows the index.
    void showPage(const QString& id);
    [[nodiscard]] QString currentPage() const; ///< id; "" where there are no pages

protected:
    void hideEvent(QHideEvent* event) override;

private:
    QWidget* buildList();
    QWidget* buildPage();
    QAction* addStep(const QString& name, const QKeySequence& shortcut);
    void openPage(const QString& id);
    void search(const QString& words);
    void markPage(const QString& id);
    void saveView() const;

    HelpPageModel* m_model;
    EmptyState* m_state = nullptr;
    QSplitter* m_splitter = nullptr;
    QLineEdit* m_search = nullptr;
    QLabel* m_found = nullptr;
    QListView* m_list = nullptr;
    HelpBrowser* m_browser = nullptr;
};

} // namespace mla::ui
