import { globalSettingId } from '../../entities/kinds/controller-setting.ts'
import { mergeMembers } from '../../entities/nested-schemas.ts'
import type { StateView } from '../../ports/state-view.ts'

/** Addresses to which a flow, or the end of a session, may redirect. */
export interface RedirectTargets {
  /** `host:port` at which consoles of this network are served. */
  readonly ownHosts: readonly string[]
  /**
   * Complete addresses that an administrator has registered, in addition to those that every
   * network has.
   */
  readonly redirectUris: readonly string[]
  readonly postLogoutUris: readonly string[]
}

/** The redirect targets of a controller, from its own settings and those of all controllers. */
export function redirectTargets(
  state: Pick<StateView, 'get'>,
  controllerId: string,
  ownHosts: readonly string[],
): RedirectTargets {
  const settingsOf = (id: string) => state.get('controllerSetting', id)?.oidc
  const ofAll = settingsOf(globalSettingId) ?? {}
  const { redirectUris, postLogoutUris } = mergeMembers(ofAll, settingsOf(controllerId) ?? {})
  return {
    ownHosts,
    redirectUris: textsIn(redirectUris),
    postLogoutUris: textsIn(postLogoutUris),
  }
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
