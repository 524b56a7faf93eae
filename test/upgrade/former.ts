/** The release that is upgraded; its package is in test/releases. */
export const formerRelease = '0.2.0'
/** Newest feature level of that release. */
export const formerLevel = 2
/** As docs/operate/upgrade.md installs it. */
export const thisRelease = '0.3.0'
