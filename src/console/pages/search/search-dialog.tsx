import { navigateTo } from '../../app/navigation.ts'
import { isSearchOpen } from '../../app/shortcuts.ts'
import { Dialog } from '../../controls/dialog.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Picker } from '../../controls/picker.tsx'
import { texts } from '../../texts.ts'
import { searchConsole, type SearchablePage } from './find.ts'

/** Finds pages, tasks, records and role attributes by name, and opens them. */
export function SearchDialog({ pages }: { readonly pages: readonly SearchablePage[] }) {
  const { search } = texts
  const close = (): void => {
    isSearchOpen.value = false
  }
  return (
    <Dialog title={search.title} onClose={close} isPalette>
      <div class="picker-only filter-input">
        <Icon name="search" />
        <Picker
          label={search.title}
          placeholder={search.placeholder}
          isFocused
          load={(typed, signal) => searchConsole(pages, typed, signal)}
          onPick={({ value }) => {
            close()
            navigateTo(value)
          }}
        />
      </div>
    </Dialog>
  )
}
