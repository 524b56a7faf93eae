/** The release from which the test upgrades; its package is in test/releases. */
export const formerRelease = '0.2.0'
/** Newest feature level of that release. */
export const formerLevel = 2
/** The version number with which docs/operate/upgrade.md installs this release. */
export const thisRelease = '0.3.0'
