// SPDX-License-Identifier: GPL-3.0-or-later
// A line for paths: typed with completion, chosen in a file dialog, or dropped.
#pragma once

#include <QLineEdit>
#include <QStringList>
#include <QWidget>

namespace mla::ui
{

class PathField : public QWidget
{
    Q_OBJECT
public:
    enum class Kind { Folder, OpenFiles, SaveFile };

    PathField(Kind kind, const QString& title, QWidget* parent = nullptr);

    [[nodiscard]] QString path() const;      ///< trimmed text
    [[nodiscard]] QStringList paths() const; ///< split at commas
    void setPath(const QString& path);
    void setPlaceholder(const QString& text);
    void setFilter(const QString& filter) { m_filter = filter; }
    [[nodiscard]] QLineEdit* edit() const { return m_edit; }

signals:
    void changed();      ///< whenever the text is another one
    void editedByUser(); ///< typed, chosen or dropped
    void chosen();       ///< chosen in the file dialog or dropped

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void browse();
    void choose(const QStringList& paths);

    Kind m_kind;
    QString m_title, m_filter;
    QLineEdit* m_edit;
};

} // namespace mla::ui
