import { globalSettingId } from '../../entities/kinds/controller-setting.ts'
import { mergeMembers } from '../../entities/nested.ts'
import type { StateView } from '../../ports/state-view.ts'

/** Addresses that a flow or the end of a session may lead to. */
export interface RedirectTargets {
  /** `host:port` that this network's consoles are served at. */
  readonly ownHosts: readonly string[]
  /** Whole addresses that an administrator has registered, beside those that every network has. */
  readonly redirectUris: readonly string[]
  readonly postLogoutUris: readonly string[]
}

/** The places of a controller, by its settings and by those of all controllers. */
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
