import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { IconButton } from '../controls/button.tsx'
import { Icon, ConsoleLogo } from '../controls/icon.tsx'
import { texts } from '../texts.ts'
import { loadCaller } from './management-document.ts'
import { lazyComponent, loadPages } from './lazy.tsx'
import { isTabInUse } from './loaded.ts'
import { CONSOLE_BASE_PATH, consolePath, currentPage } from './navigation.ts'
import { recordTitle } from './page-title.ts'
import { navigation, resolvePage, START_PAGE, usableLinks } from './pages.tsx'
import {
  eventFeed,
  isReadOnly,
  clusterMembers,
  probeFailedMembers,
  refreshMembers,
  tabSession,
} from './console-state.ts'
import { isHelpOpen, isSearchOpen } from './shortcuts.ts'
import { theme, toggleTheme } from './theme.ts'

const ShortcutHelp = lazyComponent(() =>
  import('./shortcut-help.tsx').then((one) => one.ShortcutHelp),
)
const SearchDialog = lazyComponent(() =>
  import('../pages/search/search-dialog.tsx').then((one) => one.SearchDialog),
)

const REFRESH_MS = 10_000
const isMenuOpen = signal(false)

/** The frame of all pages. */
export function Shell() {
  useEffect(() => {
    const refresh = (): void => {
      if (!isTabInUse()) return
      refreshMembers().catch(() => undefined)
      probeFailedMembers().catch(() => undefined)
    }
    const timer = setInterval(refresh, REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  // Checks the members when the event stream breaks, because that is the first sign of a failed
  // controller.
  useEffect(() => {
    if (eventFeed.state.value === 'broken') refreshMembers().catch(() => undefined)
  }, [eventFeed.state.value])
  const identityId = tabSession.current.value?.identityId ?? null
  useEffect(() => {
    if (identityId === null) return undefined
    let isOver = false
    loadCaller().catch(() => undefined)
    // Requested first, because the response contains the log position from which events are shown.
    refreshMembers()
      .catch(() => undefined)
      .finally(() => {
        if (isOver) return
        eventFeed.start(identityId)
        loadPages()
      })
      .catch(() => undefined)
    return () => {
      isOver = true
      eventFeed.stop()
    }
  }, [identityId])
  const page = resolvePage(currentPage.value)
  useEffect(() => {
    isMenuOpen.value = false
    document.querySelector('.nav [aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [page.title, currentPage.value])
  useEffect(() => {
    const parts = [recordTitle.value, page.title, texts.product]
    document.title = parts.filter((part) => part !== '').join(' · ')
  }, [page.title, recordTitle.value])
  useEffect(() => {
    const close = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') isMenuOpen.value = false
    }
    document.addEventListener('keydown', close)
    return () => document.removeEventListener('keydown', close)
  }, [])
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        {texts.shell.skip}
      </a>
      <div class="shell">
        <header class="topbar">
          <IconButton
            icon="menu"
            label={texts.shell.openMenu}
            isExpanded={isMenuOpen.value}
            onClick={() => (isMenuOpen.value = true)}
          />
          <span class="topbar-title">{texts.product}</span>
          <IconButton
            icon="search"
            label={texts.search.open}
            onClick={() => (isSearchOpen.value = true)}
          />
        </header>
        {isMenuOpen.value ? (
          <button
            type="button"
            class="scrim"
            aria-label={texts.shell.closeMenu}
            onClick={() => (isMenuOpen.value = false)}
          />
        ) : null}
        <Sidebar />
        <div class="content">
          <Banner />
          <main class="page" id="main" tabIndex={-1}>
            {page.show()}
          </main>
        </div>
      </div>
      {isHelpOpen.value ? <ShortcutHelp /> : null}
      {isSearchOpen.value ? <SearchDialog pages={usablePages()} /> : null}
    </>
  )
}

function usablePages() {
  return usableLinks(navigation.flatMap(({ links }) => links)).map(({ name, title, icon }) => ({
    title,
    icon,
    path: name === START_PAGE ? CONSOLE_BASE_PATH : consolePath(name),
  }))
}

function skipToMain(event: MouseEvent): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

function Sidebar() {
  const at = currentPage.value.names[0] ?? START_PAGE
  const groups = navigation
    .map(({ title, links }) => ({ title, links: usableLinks(links) }))
    .filter(({ links }) => links.length > 0)
  return (
    <aside class="sidebar" data-open={isMenuOpen.value}>
      <a class="brand" href={`${CONSOLE_BASE_PATH}/`}>
        <ConsoleLogo />
        {texts.product}
      </a>
      <button type="button" class="nav-search" onClick={() => (isSearchOpen.value = true)}>
        <Icon name="search" />
        <span>{texts.search.open}</span>
        <kbd>{texts.search.keys}</kbd>
      </button>
      <nav class="nav" aria-label={texts.shell.navigation}>
        {groups.map(({ title, links }) => (
          <div key={title}>
            {title === '' ? null : <div class="nav-title">{title}</div>}
            <ul>
              {links.map((link) => (
                <li key={link.name}>
                  <a
                    class="nav-link"
                    href={consolePath(link.name)}
                    aria-current={link.name === at ? 'page' : undefined}
                  >
                    <Icon name={link.icon} />
                    {link.title}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <SidebarFoot />
    </aside>
  )
}

function SidebarFoot() {
  const { shell } = texts
  return (
    <div class="sidebar-foot">
      <p class="via" title={clusterMembers.current.value}>
        {clusterMembers.isSilent.value
          ? shell.notConnected
          : shell.via(clusterMembers.currentName.value)}
      </p>
      <div class="who">
        <a class="who-name" href={consolePath('profile')} title={texts.profile.title}>
          {tabSession.current.value?.name}
        </a>
        <IconButton
          icon={theme.value === 'dark' ? 'light' : 'dark'}
          label={theme.value === 'dark' ? shell.toLight : shell.toDark}
          onClick={toggleTheme}
        />
        <IconButton icon="help" label={shell.help} onClick={() => (isHelpOpen.value = true)} />
        <IconButton
          icon="leave"
          label={shell.logOut}
          onClick={() => {
            tabSession.logOut().catch(() => undefined)
          }}
        />
      </div>
    </div>
  )
}

/** Banner for a condition that affects the whole console; only one, which names the cause. */
function Banner() {
  const { banner } = texts
  const failed = clusterMembers.failed.value
    .filter((origin) => origin !== clusterMembers.current.value)
    .map((origin) => clusterMembers.nameOf(origin))
  const isBad = clusterMembers.isSilent.value || isReadOnly.value
  const text = clusterMembers.isSilent.value
    ? banner.silent
    : isReadOnly.value
      ? banner.readOnly(failed)
      : failed.length > 0
        ? banner.unreachable(failed, clusterMembers.currentName.value)
        : ''
  return (
    <div role="status">
      {text === '' ? null : (
        <div class={isBad ? 'banner bad' : 'banner'}>
          <Icon name="alert" />
          <span>{text}</span>
        </div>
      )}
    </div>
  )
}
