/** A button that copies the address, which holds everything that is shown. */
import { t } from "../i18n";

export function CopyLink() {
  return (
    <button
      type="button"
      id="copy-link"
      onClick={(event) => {
        const { currentTarget } = event;
        void navigator.clipboard?.writeText(location.href).then(() => {
          currentTarget.dataset.copied = "";
        });
      }}
    >
      {t("Copy the link")}
    </button>
  );
}
