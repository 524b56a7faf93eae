import { globalSettingId } from '../../entities/kinds/controller-setting.ts'
import { mergeMembers } from '../../entities/nested-schemas.ts'
import type { StateView } from '../../ports/state-view.ts'

/** Addresses to which a log-in or log-out may redirect the browser. */
export interface RedirectTargets {
  /** Addresses at which this controller serves the console, each as `host:port`. */
  readonly ownHosts: readonly string[]
  /** Complete URIs that an administrator has registered, in addition to the built-in ones. */
  readonly redirectUris: readonly string[]
  readonly postLogoutUris: readonly string[]
}

/**
 * The redirect targets of a controller, from its own settings and the settings of all controllers.
 */
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
