import type { ComponentChildren, ComponentType } from 'preact'

import type { IconName } from '../controls/icon-paths.ts'
import { EmptyState } from '../controls/status.tsx'
import { Button, LinkButton } from '../controls/button.tsx'
import { type ConsoleKind, findKindAtPath, kinds as allKinds } from '../pages/records/kinds.ts'
import { HomePage } from '../pages/home/home-page.tsx'
import { texts } from '../texts.ts'
import { CONSOLE_BASE_PATH, type ConsolePage } from './navigation.ts'
import { hasPermission } from './management-document.ts'
import { lazyComponent } from './lazy.tsx'
import { PageHead } from './page-head.tsx'
import { isSearchOpen, registerPageShortcut } from './shortcuts.ts'

/** Title and content of a page. */
export interface Page {
  readonly title: string
  readonly show: () => ComponentChildren
}

interface NavigationLink {
  /** First segment of the page's path. */
  readonly name: string
  readonly title: string
  readonly icon: IconName
  /** Key that opens the page after `g`; '' if none. */
  readonly key: string
  /** Permissions that the page requires; without them, it shows nothing. */
  readonly needs: readonly string[]
  /** In addition to the permissions in `needs`, the page requires at least one of these. */
  readonly needsOneOf?: readonly string[]
}

/**
 * Permissions of which one is enough for the activity page: to read the events of the network, or
 * to read any kind of record.
 */
const activityPermissions = ['ops.read', ...allKinds.map(({ permission }) => `${permission}.read`)]

export const navigation: readonly {
  readonly title: string
  readonly links: readonly NavigationLink[]
}[] = [
  {
    title: '',
    links: [
      { name: 'home', title: texts.pages.home, icon: 'home', key: 'h', needs: [] },
      { name: 'cluster', title: texts.pages.cluster, icon: 'cluster', key: 'c', needs: ['admin'] },
      {
        name: 'access',
        title: texts.pages.access,
        icon: 'access',
        key: 'a',
        needs: ['identity.read', 'service.read'],
      },
      {
        name: 'topology',
        title: texts.pages.topology,
        icon: 'topology',
        key: 't',
        needs: ['ops.read'],
      },
      { name: 'live', title: texts.pages.live, icon: 'session', key: 'v', needs: ['ops.read'] },
      {
        name: 'activity',
        title: texts.pages.activity,
        icon: 'event',
        key: 'e',
        needs: [],
        needsOneOf: activityPermissions,
      },
      {
        name: 'wizards',
        title: texts.pages.wizards,
        icon: 'wand',
        key: 'w',
        needs: ['identity.create'],
      },
      { name: 'backups', title: texts.pages.backups, icon: 'backup', key: 'b', needs: ['admin'] },
    ],
  },
  {
    title: texts.groups.network,
    links: linksTo(
      ['identities', 'i'],
      ['services', 's'],
      ['edge-routers', 'r'],
      ['terminators', 'x'],
      ['configs', 'o'],
    ),
  },
  {
    title: texts.groups.policies,
    links: linksTo(
      ['service-policies', 'p'],
      ['edge-router-policies', ''],
      ['service-edge-router-policies', ''],
      ['posture-checks', 'k'],
    ),
  },
  {
    title: texts.groups.authentication,
    links: linksTo(
      ['auth-policies', ''],
      ['authenticators', ''],
      ['enrollments', 'l'],
      ['external-jwt-signers', ''],
      ['cas', ''],
      ['revocations', ''],
    ),
  },
  {
    title: texts.groups.more,
    links: linksTo(['transit-routers', ''], ['config-types', ''], ['controller-settings', '']),
  },
]

function linksTo(...targets: readonly (readonly [string, string])[]): NavigationLink[] {
  return targets.flatMap(([path, key]) => {
    const kind = findKindAtPath(path)
    if (kind === null) return []
    const needs = [`${kind.permission}.read`]
    return [{ name: path, title: kind.many, icon: kind.icon, key, needs }]
  })
}

/**
 * All pages that are not lists, by the first segment of their path; the code of each is loaded
 * separately.
 */
const pages: Readonly<
  Record<string, { readonly title: string; readonly Page: ComponentType<NamedPage> }>
> = {
  cluster: {
    title: texts.pages.cluster,
    Page: lazyComponent(() =>
      import('../pages/cluster/cluster-page.tsx').then((one) => one.ClusterPage),
    ),
  },
  access: {
    title: texts.pages.access,
    Page: lazyComponent(() =>
      import('../pages/access/access-page.tsx').then((one) => one.AccessPage),
    ),
  },
  topology: {
    title: texts.pages.topology,
    Page: lazyComponent(() =>
      import('../pages/topology/topology-page.tsx').then((one) => one.TopologyPage),
    ),
  },
  live: {
    title: texts.pages.live,
    Page: lazyComponent(() => import('../pages/live/live-page.tsx').then((one) => one.LivePage)),
  },
  activity: {
    title: texts.pages.activity,
    Page: lazyComponent(() =>
      import('../pages/activity/activity-page.tsx').then((one) => one.ActivityPage),
    ),
  },
  wizards: {
    title: texts.pages.wizards,
    Page: lazyComponent(() =>
      import('../pages/wizards/wizards-page.tsx').then((one) => one.WizardsPage),
    ),
  },
  attributes: {
    title: texts.pages.attributes,
    Page: lazyComponent(() =>
      import('../pages/attributes/attribute-page.tsx').then((one) => one.AttributePage),
    ),
  },
  profile: {
    title: texts.profile.title,
    Page: lazyComponent(() =>
      import('../pages/profile/profile-page.tsx').then((one) => one.ProfilePage),
    ),
  },
  backups: {
    title: texts.pages.backups,
    Page: lazyComponent(() =>
      import('../pages/backups/backups-page.tsx').then((one) => one.BackupsPage),
    ),
  },
}

/** A page that is identified by the second segment of its path. */
interface NamedPage {
  readonly name: string | null
}

/** The links that the caller may use; all links until the caller's permissions are known. */
export function usableLinks(links: readonly NavigationLink[]): readonly NavigationLink[] {
  return links.filter(
    ({ needs, needsOneOf = [] }) =>
      needs.every(hasPermission) && (needsOneOf.length === 0 || needsOneOf.some(hasPermission)),
  )
}

/** The page that opens at the base address of the console. */
export const START_PAGE = 'home'

export function resolvePage({ names }: ConsolePage): Page {
  // Earlier versions showed the live events at `events`, so that address still opens them.
  const known = names[0] === 'events' ? ['activity', 'live'] : names
  const [first = START_PAGE, second = null] = known
  if (first === START_PAGE) return { title: texts.pages.home, show: () => <HomePage /> }
  const page = Object.hasOwn(pages, first) ? pages[first] : undefined
  if (page !== undefined) {
    const { title, Page: Shown } = page
    return { title, show: () => <Shown name={second} key={`${first}/${second ?? ''}`} /> }
  }
  const kind = findKindAtPath(first)
  if (kind !== null) return recordPage(kind, second)
  return { title: texts.pages.missing, show: () => <MissingPage /> }
}

const Records = lazyComponent(() =>
  import('../pages/records/records.tsx').then(({ Records: page }) => page),
)

function recordPage(kind: ConsoleKind, id: string | null): Page {
  return {
    title: kind.many,
    show: () => <Records kind={kind} id={id} key={`${kind.path}/${id ?? ''}`} />,
  }
}

function MissingPage() {
  return (
    <>
      <PageHead title={texts.pages.missing} />
      <EmptyState icon="search" title={texts.failure.noPage}>
        <div class="row">
          <LinkButton kind="primary" href={`${CONSOLE_BASE_PATH}/`}>
            {texts.failure.toStart}
          </LinkButton>
          <Button icon="search" onClick={() => (isSearchOpen.value = true)}>
            {texts.search.open}
          </Button>
        </div>
      </EmptyState>
    </>
  )
}

export function registerPageShortcuts(): void {
  for (const { links } of navigation) {
    for (const { key, title, name } of links) if (key !== '') registerPageShortcut(key, title, name)
  }
}
