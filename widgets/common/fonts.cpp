// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/fonts.h"

#include <QApplication>
#include <QFontDatabase>

namespace mla::ui
{

bool loadBundledFonts()
{
    static const bool loaded = [] {
        bool all = true;
        for (const char* file : {":/fonts/Inter-Regular.otf", ":/fonts/Inter-SemiBold.otf",
                                 ":/fonts/DejaVuSansMono.ttf"})
            all = QFontDatabase::addApplicationFont(QString::fromLatin1(file)) >= 0 && all;
        return all;
    }();
    return loaded;
}

QString sansFamily()
{
    return QStringLiteral("Inter");
}

QFont monospaceFont()
{
    loadBundledFonts();
    QFont font = QApplication::font();
    font.setFamilies({QStringLiteral("DejaVu Sans Mono")});
    font.setStyleHint(QFont::Monospace);
    return font;
}

} // namespace mla::ui
