// SPDX-License-Identifier: GPL-3.0-or-later
// What the window keeps between starts, in the user's settings: its layout (geometry, docks,
// splitters, columns of tables), and of each study the run, layer, page and zooms last looked at.
#pragma once

#include <map>

#include <QObject>
#include <QSize>
#include <QString>

class QHeaderView;
class QSplitter;

namespace mla::ui
{

class DockArea;
class SelectionModel;
class StudyDocument;

/// Lives as long as the window, on the GUI thread.
class Session : public QObject
{
    Q_OBJECT
public:
    /// `window` is made smaller or larger, `docks` already hold every page.
    Session(QWidget& window, DockArea& docks, StudyDocument& document, SelectionModel& selection);

    void restoreLayout(); ///< once, before the window shows
    void resetLayout();   ///< as on the first start; zooms too
    void save();
    [[nodiscard]] static QString lastStudy(); ///< open when the window was last closed; "" = none

private:
    void followStudy(const QString& path);
    void showStudy();
    void saveStudy() const;
    void restoreStudy() const;
    void restoreColumns();

    QWidget& m_window;
    DockArea& m_docks;
    StudyDocument& m_document;
    SelectionModel& m_selection;
    QString m_path;             ///< the study whose views stand on the pages
    bool m_restoring = false;   ///< it was just opened, its views are still to come
    bool m_columnsDone = false; ///< what was saved has been applied to filled tables
    std::map<QSplitter*, QByteArray> m_splitters; ///< their states as the pages made them
    std::map<QHeaderView*, QByteArray> m_columns;
};

} // namespace mla::ui
